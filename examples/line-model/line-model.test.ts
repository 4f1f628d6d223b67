import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startTestServer, type TestContextLike } from '../../testing/index.ts'
import lineModel from './pack.ts'

interface Asked {
  readonly path: string | undefined
  readonly key: string | undefined
  readonly body: {
    readonly model: string
    readonly messages: readonly { readonly role: string }[]
    readonly tools: readonly { readonly name: string }[]
  }
}

/** A server of this wire: answers request n with the lines `answers[n]`, or a status; the last one repeats. */
async function startProvider(t: TestContextLike, answers: readonly (number | readonly object[])[]) {
  const asked: Asked[] = []
  const provider = createServer(async (req: IncomingMessage, res) => {
    let text = ''
    for await (const chunk of req) text += chunk
    asked.push({ path: req.url, key: req.headers.authorization, body: JSON.parse(text) as Asked['body'] })
    const answer = answers[Math.min(asked.length, answers.length) - 1]!
    if (typeof answer === 'number') res.writeHead(answer).end()
    else res.end(answer.map(line => `${JSON.stringify(line)}\n`).join(''))
  })
  await new Promise<void>(resolve => provider.listen(0, '127.0.0.1', resolve))
  t.after(() => provider.close())
  return { asked, url: `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v7` }
}

/** A server whose configuration names the wire. */
async function start(t: TestContextLike, answers: readonly (number | readonly object[])[]) {
  const { asked, url } = await startProvider(t, answers)
  const home = await mkdtemp(join(tmpdir(), 'line-model-'))
  const config = `default_model = "small"
[providers.home]
type = "lines"
base_url = "${url}"
api_key = "key-of-home"
[models.small]
provider = "home"
model = "small-1"
max_context_size = 32000
`
  await writeFile(join(home, 'config.toml'), config, { mode: 0o600 })
  const server = await startTestServer(t, { home, packs: [lineModel], approvals: 'approved' })
  t.after(() => rm(home, { recursive: true, force: true, maxRetries: 3 }))
  return { server, asked }
}

const end = { end: 'stop', tokens: [12, 3] }

test('a provider of this wire answers a prompt, with the tools of the server', async t => {
  const call = { call: { id: 'c1', name: 'Bash', arguments: { command: 'echo from the shell' } } }
  const { server, asked } = await start(t, [
    [{ say: 'One moment. ' }, call, end],
    [{ say: 'All ' }, { say: 'done.' }, end]
  ])

  const { reason, text, results } = await server.prompt('run it')

  assert.deepEqual([reason, text, results[0]?.output.trim()], ['completed', 'All done.', 'from the shell'])
  assert.deepEqual(
    asked.map(({ path, key, body }) => [path, key, body.model]),
    Array(2).fill(['/v7/generate', 'Bearer key-of-home', 'small-1'])
  )
  assert.ok(asked[0]?.body.tools.some(tool => tool.name === 'Bash'))
  assert.equal(asked[1]?.body.messages.at(-1)?.role, 'tool')
})

test('what breaks off, means nothing or is busy is tried again; a refused key is not', async t => {
  const { server, asked } = await start(t, [[{ say: 'bro' }], [{ what: 1 }], 503, [{ say: 'at last' }, end], 401])

  assert.deepEqual((await server.prompt('go')).reason, 'completed')
  assert.equal(asked.length, 4)
  assert.equal((await server.prompt('go on')).reason, 'failed')
  assert.equal(asked.length, 5)
})

test('without the pack the same configuration says what is missing', async t => {
  const { server } = await start(t, [[{ say: 'hello' }, end]])
  await server.kernel.unload('line-model')
  await assert.rejects(server.prompt('hello'), /40113/)
})
