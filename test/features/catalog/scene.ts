/** A server with the catalog pack, and an HTTP server in place of a directory or a registry. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import catalog from '../../../features/catalog/pack.ts'
import { type Scene, start } from '../providers/scene.ts'

export interface Upstream {
  readonly url: string
  readonly asked: { readonly path: string; readonly headers: IncomingHttpHeaders }[]
  /** JSON, raw text, or a status. */
  reply: unknown
}

export async function upstream(t: TestContext, reply: unknown): Promise<Upstream> {
  const asked: Upstream['asked'] = []
  const server = createServer((req, res) => {
    asked.push({ path: req.url ?? '', headers: req.headers })
    const answer = self.reply
    if (typeof answer === 'number') res.writeHead(answer).end('no')
    else res.end(typeof answer === 'string' ? answer : JSON.stringify(answer))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const self: Upstream = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, reply }
  return self
}

/** Starts the packs with this directory; without one the built-in snapshot is used. */
export async function startCatalog(t: TestContext, directory?: string, toml?: string, now?: () => Date): Promise<Scene> {
  if (directory === undefined) delete process.env.SVC_CODE_CATALOG_URL
  else process.env.SVC_CODE_CATALOG_URL = directory
  return start(t, { more: [catalog], ...(toml === undefined ? {} : { toml }), ...(now && { now }) })
}
