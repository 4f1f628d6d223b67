/** What GET hides survives when a client sends back what it saw, changed elsewhere. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { patchConfig, readConfig } from '../../../features/config/index.ts'
import config from '../../../features/config/pack.ts'
import { readToml } from '../../../features/config/toml.ts'
import { startTestKernel, type TestContextLike } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'

const toml = `
extra_skill_dirs = ["https://me:LEAK-1@skills.example/a.git", "plain"]
hooks = [
  { event = "Stop", command = "curl -H 'Authorization: Bearer LEAK-2-LEAK-2' https://h.example" },
  { event = "Stop", command = "DEPLOY_TOKEN=LEAK-3 ./deploy" },
]
[unknown]
list = [{ name = "a", client_secret = "LEAK-4" }, { name = "a", client_secret = "LEAK-5" }]
args = ["--api-key", "LEAK-6", "--token=LEAK-7"]
`

interface Shown {
  readonly extra_skill_dirs: readonly string[]
  readonly hooks: readonly object[]
  readonly raw: { readonly unknown: { readonly args: readonly string[] } }
}

async function start(t: TestContextLike) {
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), toml)
  const kernel = await startTestKernel(t, { packs: [config], home })
  const read = async () => (await kernel.call(readConfig)).data as unknown as Shown
  return { ...kernel, home, read, file: async () => readToml(await readFile(join(home, 'config.toml'), 'utf8')) }
}

test('credentials inside commands, lists and URLs are taken out of the answer, what is around them stays', async t => {
  const { read } = await start(t)

  const data = await read()

  assert.doesNotMatch(JSON.stringify(data), /LEAK/)
  assert.deepEqual(data.extra_skill_dirs, ['https://skills.example/a.git', 'plain'])
  assert.deepEqual(data.hooks, [
    { event: 'Stop', command: "curl -H 'Authorization: [redacted]' https://h.example" },
    { event: 'Stop', command: 'DEPLOY_TOKEN=[redacted] ./deploy' }
  ])
  assert.deepEqual(data.raw.unknown.args, ['--api-key', '[redacted]', '--token=[redacted]'])
})

test('an item of a list that is changed elsewhere keeps what its texts hide', async t => {
  const { call, read, file } = await start(t)
  const [first, second] = (await read()).hooks
  const [stored, other] = (await file()).hooks as object[]

  const answer = await call(patchConfig, { body: { hooks: [{ ...second, timeout: 7 }, first] } as never })

  assert.equal(answer.code, 0, answer.msg)
  assert.deepEqual((await file()).hooks, [{ ...other, timeout: 7 }, stored])
})

test('a URL that is changed behind its host keeps what GET hides of it, alone, in a list and in a command', async t => {
  const { call, read, file, home } = await start(t)
  const stored = `hooks = [{ event = "Stop", command = "curl 'https://me:LEAK-1@h.example/a'" }]
extra_skill_dirs = ["https://me:LEAK-2@skills.example/a.git", "plain"]
services.svc_search.base_url = "https://me:LEAK-3@search.example/v1?api_key=LEAK-4&n=1"
`
  await writeFile(join(home, 'config.toml'), stored)
  assert.doesNotMatch(JSON.stringify(await read()), /LEAK/)

  const body = {
    hooks: [{ event: 'Stop', command: "curl 'https://h.example/b' -s", timeout: 5 }],
    extra_skill_dirs: ['plain', 'https://skills.example/b.git'],
    services: { svc_search: { base_url: 'https://search.example/v2?n=2&api_key=' } }
  }
  const answer = await call(patchConfig, { body: body as never })

  assert.equal(answer.code, 0, answer.msg)
  assert.deepEqual(await file(), {
    hooks: [{ event: 'Stop', command: "curl 'https://me:LEAK-1@h.example/b' -s", timeout: 5 }],
    extra_skill_dirs: ['plain', 'https://me:LEAK-2@skills.example/b.git'],
    services: { svc_search: { base_url: 'https://me:LEAK-3@search.example/v2?n=2&api_key=LEAK-4' } }
  })
})

test('a text that was changed around the place of a secret is refused: the secret would be lost', async t => {
  const { call, read, file } = await start(t)
  const before = await file()
  const [first, second] = (await read()).hooks as { command: string }[]

  const body = { hooks: [first, { ...second, command: `${second?.command} --now` }], telemetry: true }
  const answer = await call(patchConfig, { body: body as never })

  assert.deepEqual([answer.code, answer.details?.map(({ path }) => path)], [40001, ['body.hooks.1.command']])
  assert.deepEqual(await file(), before)
})

test('a list sent back with one item more and one less keeps what the others hide', async t => {
  const { call, read, file } = await start(t)
  const data = await read()
  const before = await file()
  const [, second] = data.hooks

  const body = { hooks: [{ event: 'Stop', command: 'true' }, second], extra_skill_dirs: [...data.extra_skill_dirs, 'more'] }
  const answer = await call(patchConfig, { body: body as never })

  assert.equal(answer.code, 0, answer.msg)
  const after = await file()
  assert.deepEqual(after.hooks, [{ event: 'Stop', command: 'true' }, (before.hooks as unknown[])[1]])
  assert.deepEqual(after.extra_skill_dirs, [...(before.extra_skill_dirs as unknown[]), 'more'])
})
