/** The page at `/`, as long as no pack serves one: says what answers here. It needs no token, so it tells nothing of this server. */

import { Readable } from 'node:stream'
import { type BinaryReply, binary } from '../../kernel/index.ts'

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>svc-code</title>
<style>
  body { font: 16px/1.6 system-ui, sans-serif; max-width: 42rem; margin: 4rem auto; padding: 0 1rem; color-scheme: light dark }
  code { font-size: .9em }
</style>
<h1>svc-code</h1>
<p>This is the local server of a coding agent. It runs, and it has no web page: programs use it through its API.</p>
<ul>
  <li>REST below <code>/api/v1</code>, events over a WebSocket at <code>/api/v1/ws</code></li>
  <li><a href="/api/v1/healthz"><code>/api/v1/healthz</code></a> answers without a token; everything else wants
    <code>Authorization: Bearer &lt;token&gt;</code></li>
  <li><code>/openapi.json</code> and <code>/asyncapi.json</code> describe the whole of it, with the token</li>
</ul>
<p>The token was printed in the terminal in which the server was started; <code>svc-code token</code> prints it again.
  <code>svc-code --help</code> lists what else there is.</p>
</html>
`

const headers = { 'cache-control': 'no-store', 'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'" }

export function startPage(): BinaryReply {
  return binary({ stream: Readable.from([page]), type: 'text/html; charset=utf-8', size: Buffer.byteLength(page), headers })
}
