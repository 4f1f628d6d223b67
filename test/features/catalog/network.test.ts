/** Whom the pack may call, and that nothing started by this project calls the public directory. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { RestClient } from '../../../kernel/testing.ts'
import { runWith, serveWith } from '../../helpers/cli.ts'
import { projectRoot } from '../../helpers/project-root.ts'
import { freshDir } from '../../helpers/temp.ts'
import { upstream } from './scene.ts'

const directoryLine = /^catalog +(\S+) +(?:refused +)?the model directory +a client asks for it, once in ten minutes$/m

test('doctor --network shows the directory: the public one, another one, or none', async () => {
  const home = await freshDir()
  // This command lists hosts and calls nobody.
  const host = async (url: string | undefined, ...args: string[]) =>
    directoryLine.exec((await runWith({ SVC_CODE_HOME: home, SVC_CODE_CATALOG_URL: url }, 'doctor', '--network', ...args)).stdout)?.[1]

  assert.equal(await host(undefined), 'https://models.dev')
  assert.equal(await host('off'), undefined)
  assert.equal(await host(undefined, '--disable', 'catalog'), undefined)
  await writeFile(join(home, 'config.toml'), '[packs.config.catalog]\ndirectory = "https://u:p@ours.invalid/x?key=1"\n')
  assert.equal(await host(undefined), 'https://ours.invalid', 'without user name, path and query')
})

test('a server asks its directory when a client does, and not before', async t => {
  const live = await upstream(t, { a: { id: 'a', api: 'https://a.example', models: {} } })
  const { url, token } = await serveWith(t, { SVC_CODE_HOME: await freshDir(), SVC_CODE_CATALOG_URL: live.url }, '--port', '0')
  const rest = new RestClient(url, token)
  t.after(() => rest.close())
  await rest.json('GET', '/api/v1/meta')
  assert.equal(live.asked.length, 0)

  const { data } = await rest.json('GET', '/api/v1/catalog/providers')
  assert.deepEqual(
    (data as { items: { id: string }[] }).items.map(({ id }) => id),
    ['a']
  )
  assert.equal(live.asked.length, 1)
})

test('whoever starts the whole program in tests, bench or demo switches the public directory off', () => {
  const root = fileURLToPath(projectRoot)
  const starters = ['test', 'examples']
    .flatMap(dir => readdirSync(join(root, dir), { recursive: true }).map(name => join(root, dir, String(name))))
    .filter(path => path.endsWith('.ts'))
    .map(path => ({ path, text: readFileSync(path, 'utf8') }))
    .filter(({ text }) => /(features|bundle)\/main\.js/.test(text) && /spawn/.test(text))

  assert.ok(starters.length >= 3)
  for (const { path, text } of starters) assert.match(text, /SVC_CODE_CATALOG_URL: 'off'/, path)
})
