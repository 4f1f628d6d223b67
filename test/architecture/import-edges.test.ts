/** The import edges that the linter holds: who may know whom. Seen on a small project made up here, with the project's own rules. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { projectRoot } from '../helpers/project-root.ts'
import { freshDir } from '../helpers/temp.ts'

const root = fileURLToPath(projectRoot)

/** Lines that are wrong carry the rule that must find them behind `// `. */
const edges: Readonly<Record<string, string>> = {
  'kernel/index.ts': "export { inner } from './inner.ts'\n",
  'kernel/inner.ts': 'export const inner = 1\n',
  'kernel/testing.ts': "export { inner } from './inner.ts'\n",
  'kernel/door.ts': "export { one } from '../features/one/index.ts' // noRestrictedImports\n",
  'kernel/later.ts': "export const later = () => import('../features/one/index.ts') // noRestrictedImports\n",
  'kernel/typed.ts': "export type { One } from '../features/one/index.ts' // noRestrictedImports\n",
  'kernel/example.ts': "export * from '../examples/x/pack.ts' // noRestrictedImports\n",
  'features/one/index.ts': [
    "export { one } from './contract.ts'",
    "export { two } from '../two/index.ts' // noRestrictedImports",
    "export { default } from './pack.ts' // noRestrictedImports",
    ''
  ].join('\n'),
  'features/one/contract.ts': [
    "import { join } from 'node:path' // noRestrictedImports",
    "import { inner } from '../../kernel/index.ts'",
    "import { two } from '../two/index.ts'",
    "import { used } from 'used' // noRestrictedImports",
    'export const one = [join, inner, two, used]',
    ''
  ].join('\n'),
  'features/one/domain.ts': [
    "import { readFile } from 'node:fs/promises'",
    "import type { One } from '../../kernel/inner.ts' // noRestrictedImports",
    "import { test } from '../../kernel/testing.ts' // noRestrictedImports",
    "import { two } from '../two/index.ts'",
    "import { hidden } from '../two/domain.ts' // noRestrictedImports",
    "import pack from '../two/pack.ts' // noRestrictedImports",
    "import own from './pack.ts' // noRestrictedImports",
    "import { helper } from '../../test/helpers/x.ts' // noRestrictedImports",
    "import { packs } from '../default-packs.ts' // noRestrictedImports",
    "import { checker } from 'checker' // noUndeclaredDependencies",
    "import { gone } from '@scope/unlisted' // noUndeclaredDependencies",
    'export const domain: One = [readFile, test, two, hidden, pack, own, helper, packs, checker, gone]',
    ''
  ].join('\n'),
  'features/one/room/inner.ts': [
    "import type { One } from '../../../kernel/inner.ts' // noRestrictedImports",
    "import { two } from '../../two/index.ts'",
    "import { hidden } from '../../two/domain.ts' // noRestrictedImports",
    "import { one } from '../contract.ts'",
    'export const inner: One = [two, hidden, one]',
    ''
  ].join('\n'),
  'features/one/pack.ts':
    "import { join } from 'node:path' // noRestrictedImports\nimport { two } from '../two/index.ts'\nexport default [join, two]\n",
  'features/two/index.ts': "export { two } from './contract.ts'\n",
  'features/two/contract.ts': "import { inner } from '../../kernel/index.ts'\nexport const two = inner\n",
  'features/two/domain.ts': "import { back } from './back.ts' // noImportCycles\nexport const hidden = back\n",
  'features/two/back.ts': "import { hidden } from './domain.ts' // noImportCycles\nexport const back = hidden\n",
  'features/two/shape.ts':
    "import type { Part } from './part.ts' // noImportCycles\nexport interface Shape {\n  readonly parts: readonly Part[]\n}\n",
  'features/two/part.ts': "import type { Shape } from './shape.ts' // noImportCycles\nexport interface Part {\n  readonly of: Shape\n}\n",
  'features/two/pack.ts': "import { hidden } from './domain.ts'\nexport default hidden\n",
  'features/default-packs.ts': "export const packs = [() => import('./one/pack.ts')]\n",
  'features/main.ts': "import { helper } from '../test/helpers/x.ts' // noRestrictedImports\nexport default helper\n",
  'examples/x/pack.ts':
    "import { one } from '../../features/one/index.ts'\nimport { inner } from '../../kernel/index.ts'\nexport default [one, inner]\n",
  'examples/x/deep.ts': "import { hidden } from '../../features/two/domain.ts' // noRestrictedImports\nexport default hidden\n",
  'examples/y/pack.ts': "import x from '../x/pack.ts' // noRestrictedImports\nexport default x\n",
  'test/helpers/x.ts':
    "import { inner } from '../../kernel/inner.ts'\nimport { checker } from 'checker'\nexport const helper = [inner, checker]\n"
}

test('every wrong edge is found, and no right one', async () => {
  const dir = await freshDir()
  await copyFile(join(root, 'biome.json'), join(dir, 'biome.json'))
  await writeFile(
    join(dir, 'package.json'),
    JSON.stringify({ name: 'small', type: 'module', dependencies: { used: '1' }, devDependencies: { checker: '1' } })
  )
  for (const [path, text] of Object.entries(edges)) {
    await mkdir(dirname(join(dir, path)), { recursive: true })
    await writeFile(join(dir, path), text)
  }
  const rules = ['style/noRestrictedImports', 'suspicious/noImportCycles', 'correctness/noUndeclaredDependencies']
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [
      join(root, 'node_modules/@biomejs/biome/bin/biome'),
      'lint',
      ...rules.map(rule => `--only=${rule}`),
      '--vcs-enabled=false',
      '--max-diagnostics=200',
      '--colors=off',
      '.'
    ],
    { cwd: dir, encoding: 'utf8' }
  )

  const found = [...`${stdout}${stderr}`.matchAll(/^(\S+?):(\d+):\d+ lint\/\w+\/(\w+)/gm)].map(
    ([, path, line, rule]) => `${path}:${line} ${rule}`
  )
  const expected = Object.entries(edges).flatMap(([path, text]) =>
    text.split('\n').flatMap((line, at) => {
      const rule = / \/\/ (\w+)$/.exec(line)?.[1]
      return rule === undefined ? [] : [`${path}:${at + 1} ${rule}`]
    })
  )
  assert.deepEqual([...new Set(found)].sort(), expected.sort())
})
