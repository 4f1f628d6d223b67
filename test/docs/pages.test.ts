/** What README and docs print is run: shell blocks in order, files as they are to be saved, configuration as a server reads it. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { importCatalog } from '../../features/catalog/index.ts'
import { readDeployment } from '../../features/cli/deployment.ts'
import { Config } from '../../features/config/index.ts'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { definePack } from '../../kernel/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'
import { command } from '../helpers/cli-io.ts'
import { blocksOf, runPages } from '../helpers/doc-shell.ts'
import { projectRoot } from '../helpers/project-root.ts'
import { freshDir } from '../helpers/temp.ts'

const text = (path: string) => readFileSync(new URL(path, projectRoot), 'utf8')
const docs = readdirSync(new URL('docs', projectRoot)).map(name => `docs/${name}`)
const printing = (kind: string) => ['README.md', ...docs].filter(page => blocksOf(text(page)).some(block => block.kind === kind))

/** What must have been printed somewhere on the way. */
const seen: Readonly<Record<string, readonly RegExp[]>> = {
  'docs/first-prompt.md': [/"ready":true/, /approval_[0-9a-f-]{36}/, /"type":"tool_result"/],
  'docs/websocket.md': [/completed, continue from \{"seq":\d+,"epoch":"[^"]+"\}/],
  'docs/web-pages.md': [/<pre id="out">/, /svc-code\.bearer\./],
  'docs/writing-packs.md': [
    /^dice .*: fine$/m,
    /^all 7 checks passed; its own tests passed$/m,
    /RollDice answered: The die shows \d+ of 20\./
  ],
  'docs/packs.md': [/"data":\{"text":"hello"\}/],
  'docs/providers.md': [/"default_model":"local\/qwen3:32b","managed_provider":null\}/]
}

// Pages that need no other server than the one with the demo model share it: starting takes longer than what they print. The first prompt stops it.
const shells = printing('sh')
const starting = shells.filter(page => /svc-code run|npm start(?! -- --demo\s*(#|$))/m.test(text(page)))
const sharing = shells.filter(page => !starting.includes(page)).sort((a, b) => Number(a.includes('first-')) - Number(b.includes('first-')))

for (const pages of [...starting.map(page => [page]), sharing]) {
  test(`${pages.join(', ')}: every command runs, and every answer is what the page says`, {
    skip: process.platform === 'win32'
  }, async t => {
    const printed = await runPages(t, pages.map(text))
    for (const page of pages) for (const pattern of seen[page] ?? []) assert.match(printed, pattern)
  })
}

test('a session that a block deletes was made in it: who copies the block loses nothing', () => {
  const blocks = shells.flatMap(page => blocksOf(text(page))).filter(block => /sessions rm/.test(block.text))
  assert.ok(blocks.length > 0)
  for (const { text: lines } of blocks) assert.match(lines, /^S=.*(?:svc-code run|\/sessions -d).*^npx svc-code sessions rm --yes \$S/ms)
})

test('a block names what it made itself: the skill it calls, the workspace of its session', () => {
  assert.match(text('docs/extending.md'), /skills\/greet\/SKILL\.md\n.*\n.*skills\/greet:activate/)
  assert.match(text('docs/approvals.md'), /^W=.*\$U\/sessions\/\$S \|.*\n.*\$W\/trust/m)
})

for (const page of printing('toml')) {
  test(`${page}: every configuration is read without a remark`, async t => {
    for (const { text: toml, line } of blocksOf(text(page)).filter(block => block.kind === 'toml')) {
      const home = await freshDir()
      await writeFile(join(home, 'config.toml'), toml, { mode: 0o600 })
      const { disable, config: options } = await readDeployment({ home }, {})
      let remarks: unknown
      const reader = definePack({
        name: 'reader',
        needs: { config: Config },
        setup: (ctx, { config }) => {
          ctx.tap(ctx.hooks.started, async () => {
            remarks = await (config as Config).diagnostics()
          })
        }
      })
      const packs = [...(await loadDefaultPacks(disable)), reader]
      const { kernel } = await startTestKernel(t, { home, packs, config: options as Record<string, Record<string, unknown>> })
      assert.deepEqual(remarks, [], `${page}:${line}`)
      assert.deepEqual(
        kernel.features().filter(({ state }) => state === 'Failed'),
        [],
        `${page}:${line}`
      )
      await kernel.stop()
    }
  })
}

test('the table of vendors says what the built-in model directory says', async t => {
  const { call } = await startTestKernel(t, { packs: await loadDefaultPacks() })
  const rows = [...text('docs/providers.md').matchAll(/^\| .* \| `([^`]+)` \| `(\w+)` \| `(https?:[^`]+)` \|$/gm)]
  assert.ok(rows.length > 10)
  for (const [, catalog_id, type, base_url] of rows) {
    const { code, msg, data } = await call(importCatalog, { body: { catalog_id: catalog_id ?? '', api_key: 'k' } })
    assert.equal(code, 0, `${catalog_id}: ${msg}`)
    assert.deepEqual([data.provider.type, data.provider.base_url], [type, base_url], catalog_id)
  }
})

test('what the page about writing packs prints stands in the examples', () => {
  const lines = (code: string) =>
    code
      .split('\n')
      .map(line => line.trim())
      .join('\n')
  const blocks = blocksOf(text('docs/writing-packs.md')).filter(({ kind }) => kind === 'ts')
  assert.ok(blocks.length > 8)
  for (const { file = '', text: code, line } of blocks)
    assert.ok(lines(text(file)).includes(lines(code).trim()), `line ${line} is not in ${file}`)
})

test('the packs that pages print in one file pass svc-code pack check', async () => {
  const dir = await freshDir()
  const files = docs
    .flatMap(page => blocksOf(text(page)))
    .filter(({ file, text: code }) => file && !file.includes('/') && /export default definePack/.test(code))
  assert.ok(files.length >= 2)
  for (const { file = '', text: code } of files) {
    await writeFile(join(dir, file), code)
    const { stdout, stderr } = await command(dir, ['pack', 'check', join(dir, file)])
    assert.match(stdout, /: fine\n$/, stdout + stderr)
  }
})

test('the test that CONTRIBUTING prints is the one that runs', () => {
  const [block] = blocksOf(text('CONTRIBUTING.md')).filter(({ kind }) => kind === 'ts')
  assert.ok(block?.file && existsSync(new URL(block.file, projectRoot)), `${block?.file} exists`)
  assert.equal(block.text, text(block.file))
})
