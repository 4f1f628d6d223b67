/** The architecture checks: the project passes them, and each one finds what it is for (seen on small projects made up here). */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { projectRoot } from '../helpers/project-root.ts'
import { freshDir } from '../helpers/temp.ts'

const root = fileURLToPath(projectRoot)

interface Verdict {
  readonly code: number | null
  /** `file:line text`, one per finding. */
  readonly findings: string[]
}

function check(...args: string[]): Verdict {
  const { status, stderr } = spawnSync(process.execPath, [join(root, '.ci', 'check.mjs'), ...args], { encoding: 'utf8' })
  const lines = stderr.split('\n').filter(line => line !== '')
  return { code: status, findings: lines.filter(line => !/^\d+ findings?$/.test(line)) }
}

/** A project that passes every check: a kernel and the packs `one` and `two`. */
const sound: Readonly<Record<string, string>> = {
  'package.json': JSON.stringify({ name: 'svc-code', dependencies: {}, devDependencies: {}, scripts: {} }, undefined, 2),
  'kernel/index.ts': "export * from './inner.ts'\n",
  'kernel/inner.ts': 'export const errorSpec = (name: string, code: number) => ({ name, code })\n',
  'kernel/testing.ts': "export { errorSpec } from './inner.ts'\n",
  'features/main.ts': "await import('./default-packs.ts')\n",
  'features/default-packs.ts': "export const packs = [() => import('./one/pack.ts'), () => import('./two/pack.ts')]\n",
  ...pack('one'),
  ...pack('two')
}

function pack(name: string): Record<string, string> {
  return {
    [`features/${name}/index.ts`]: "export * from './contract.ts'\n",
    [`features/${name}/contract.ts`]: "import { errorSpec } from '../../kernel/index.ts'\nexport const build = errorSpec\n",
    [`features/${name}/domain.ts`]: "import { join } from 'node:path'\nexport const place = join('a', 'b')\n",
    [`features/${name}/pack.ts`]: "import { place } from './domain.ts'\nexport default { place }\n",
    [`features/${name}/README.md`]: `# ${name}\n`,
    [`test/features/${name}/${name}.test.ts`]: "import { test } from 'node:test'\ntest('it is there', () => undefined)\n"
  }
}

/** Checks the sound project with these files put over it; `undefined` takes a file away. */
async function verdict(changes: Readonly<Record<string, string | undefined>>): Promise<Verdict> {
  const dir = await freshDir()
  for (const [path, text] of Object.entries({ ...sound, ...changes })) {
    if (text === undefined) continue
    await mkdir(dirname(join(dir, path)), { recursive: true })
    await writeFile(join(dir, path), text)
  }
  return check(dir)
}

/** One change, and where the finding must point. */
async function finds(changes: Readonly<Record<string, string | undefined>>, ...expected: RegExp[]): Promise<void> {
  const { code, findings } = await verdict(changes)
  assert.equal(code, 1)
  assert.equal(findings.length, expected.length, findings.join('\n'))
  for (const [at, pattern] of expected.entries()) assert.match(findings[at] ?? '', pattern)
}

test('the project passes', () => {
  assert.deepEqual(check(), { code: 0, findings: [] })
})

test('the sound project passes', async () => {
  assert.deepEqual(await verdict({}), { code: 0, findings: [] })
})

test('the kernel knows no pack, example or test', async () => {
  await finds(
    {
      'kernel/inner.ts': [
        "import { build } from '../features/one/index.ts'",
        "export type { X } from '../examples/x/pack.ts'",
        "const later = import('../test/helpers/x.ts')",
        ''
      ].join('\n'),
      'examples/x/pack.ts': 'export type X = 1\n',
      'test/helpers/x.ts': 'export const x = 1\n'
    },
    /^kernel\/inner\.ts:1 the kernel must not know features/,
    /^kernel\/inner\.ts:2 the kernel must not know examples/,
    /^kernel\/inner\.ts:3 imports the test file/
  )
})

test('packs enter the kernel by its door only, for types as well', async () => {
  await finds(
    { 'features/one/domain.ts': "import type { A } from '../../kernel/inner.ts'\nimport { b } from '../../kernel/testing.ts'\n" },
    /^features\/one\/domain\.ts:1 imports kernel\/inner\.ts; packs use kernel\/index\.ts/,
    /^features\/one\/domain\.ts:2 imports kernel\/testing\.ts/
  )
})

test('another pack is reached by its index.ts only', async () => {
  await finds(
    {
      'features/one/domain.ts': "\nimport type { place } from '../two/domain.ts'\nexport const later = () => import('../two/pack.ts')\n",
      'features/two/domain.ts': "import { packs } from '../default-packs.ts'\n"
    },
    /^features\/one\/domain\.ts:2 imports features\/two\/domain\.ts; other packs are reached by features\/two\/index\.ts/,
    /^features\/one\/domain\.ts:3 imports features\/two\/pack\.ts/,
    /^features\/two\/domain\.ts:1 imports features\/default-packs\.ts, which is no part of a pack/
  )
})

test('contract.ts is pure data: no library, no built-in module, no domain file that needs one', async () => {
  await finds(
    {
      'features/one/contract.ts': "import { join } from 'node:path'\nimport { place } from './domain.ts'\nimport x from './shapes.ts'\n",
      'features/one/shapes.ts': "import { build } from '../two/index.ts'\nexport default build\n"
    },
    /^features\/one\/contract\.ts:1 contract\.ts is pure data, but imports node:path/,
    /^features\/one\/contract\.ts:2 contract\.ts is pure data, but imports features\/one\/domain\.ts/
  )
})

test('index.ts shows own files that run nothing when they are loaded', async () => {
  await finds(
    {
      'features/one/index.ts': [
        "export * from '../two/index.ts'",
        "export { default } from './pack.ts'",
        "import './domain.ts'",
        "export { start } from './start.ts'",
        ''
      ].join('\n'),
      'features/one/start.ts': "import { late } from './late.ts'\nexport const start = late\n",
      'features/one/late.ts': 'export const late = 1\nsetInterval(() => late)\n'
    },
    /^features\/one\/index\.ts:1 index\.ts shows own files only/,
    /^features\/one\/index\.ts:2 index\.ts must not import pack\.ts/,
    /^features\/one\/index\.ts:3 index\.ts imports features\/one\/domain\.ts for its side effects/,
    /^features\/one\/index\.ts:4 .* but features\/one\/late\.ts:2 runs code/
  )
})

test('pack.ts only wires, and only the composition root imports it', async () => {
  await finds(
    { 'features/one/pack.ts': "import { join } from 'node:path'\n", 'features/two/domain.ts': "import two from './pack.ts'\n" },
    /^features\/one\/pack\.ts:1 pack\.ts only wires; node:path/,
    /^features\/two\/domain\.ts:1 pack\.ts is imported by the composition root only/
  )
})

test('examples use the public doors, and nothing but tests imports tests', async () => {
  await finds(
    {
      'examples/x/pack.ts': "import { build } from '../../features/one/index.ts'\nimport { place } from '../../features/one/domain.ts'\n",
      'examples/x/other.ts': "import '../y/pack.ts'\nimport { errorSpec } from '../../kernel/testing.ts'\nimport pack from './pack.ts'\n",
      'examples/y/pack.ts': 'export {}\n',
      'features/main.ts': "import '../test/features/one/one.test.ts'\n"
    },
    /^examples\/x\/other\.ts:1 an example uses the public doors only/,
    /^examples\/x\/pack\.ts:2 an example uses the public doors only/,
    /^features\/main\.ts:1 imports the test file/
  )
})

test('a file that does not exist, a file of no pack and a computed name are found', async () => {
  await finds(
    {
      'features/one/domain.ts': "import { a } from './gone.ts'\nexport const any = (name: string) => import(name)\n",
      'features/loose.ts': "import '../kernel/index.ts'\n"
    },
    /^features\/loose\.ts:1 stands in features\/ outside of a pack/,
    /^features\/one\/domain\.ts:1 imports features\/one\/gone\.ts, which does not exist/,
    /^features\/one\/domain\.ts:2 imports a computed name/
  )
})

test('what looks like an import in comments, strings, templates and regular expressions is none', async () => {
  const hole = '$'
  const text = [
    "// import '../two/domain.ts'",
    "/* import '../two/domain.ts' */",
    'const a = "import \'../two/domain.ts\'"',
    `const b = \`import '../two/domain.ts' ${hole}{[1].map(x => \`${hole}{x}\`)}\``,
    "const c = /import '..\\/two\\/domain.ts'/.test(a)",
    "const d = { import: (x: string) => x }.import('../two/domain.ts')",
    'export { a, b, c, d }',
    ''
  ].join('\n')
  assert.deepEqual(await verdict({ 'features/one/domain.ts': text }), { code: 0, findings: [] })
})

test('a circle between packs is found over imports that exist at run time, not over types', async () => {
  const typesOnly = {
    'features/one/domain.ts': "import { build } from '../two/index.ts'\n",
    'features/two/domain.ts': "import type { build } from '../one/index.ts'\n"
  }
  assert.deepEqual(await verdict(typesOnly), { code: 0, findings: [] })
  await finds(
    { ...typesOnly, 'features/two/domain.ts': "\nimport { type build } from '../one/index.ts'\n" },
    /^features\/one\/domain\.ts:1 packs import each other in a circle: one -> two -> one/,
    /^features\/two\/domain\.ts:2 packs import each other in a circle/
  )
})

test('an error code or name that is taken, or computed, is found', async () => {
  await finds(
    {
      'features/one/contract.ts': [
        "import { errorSpec } from '../../kernel/index.ts'",
        "export const A = errorSpec('a_missing', 40_444, 'a')",
        "export const B = errorSpec('a_missing', 40445, 'b')",
        ''
      ].join('\n'),
      'features/two/contract.ts': [
        "import { errorSpec } from '../../kernel/index.ts'",
        "export const C = errorSpec('c_missing', 40444, 'c')",
        "export const D = errorSpec('d_missing', 40000 + 1, 'd').code",
        "export const E = errorSpec(C.name, 40446, 'e')",
        ''
      ].join('\n')
    },
    /^features\/one\/contract\.ts:3 error name 'a_missing' belongs to features\/one\/contract\.ts:2/,
    /^features\/two\/contract\.ts:2 error code 40444 belongs to features\/one\/contract\.ts:2/,
    /^features\/two\/contract\.ts:3 errorSpec takes its name and code as literals/,
    /^features\/two\/contract\.ts:4 errorSpec takes its name and code as literals/
  )
})

test('packages are used and listed, each where it belongs', async () => {
  const pkg = {
    name: 'svc-code',
    dependencies: { used: '1', idle: '1', testonly: '1' },
    optionalDependencies: { maybe: '1' },
    devDependencies: { tool: '1', checker: '1', '@types/used': '1', '@types/idle': '1', dusty: '1' },
    scripts: { build: 'tool-bin --fast' }
  }
  await finds(
    {
      'package.json': JSON.stringify(pkg, undefined, 2),
      'package-lock.json': JSON.stringify({ packages: { 'node_modules/tool': { bin: { 'tool-bin': 'x.js' } } } }),
      'features/one/domain.ts': [
        "import { a } from 'used/deep.js'",
        "import { b } from 'checker'",
        "import { c } from '@scope/unlisted/x'",
        "const name = 'maybe'",
        'export const later = () => import(name)',
        ''
      ].join('\n'),
      'test/features/one/more.test.ts': "import 'checker'\nimport 'testonly'\n"
    },
    /^features\/one\/domain\.ts:2 checker is a development dependency only/,
    /^features\/one\/domain\.ts:3 @scope\/unlisted is not in package\.json/,
    /^package\.json:\d+ idle is not used/,
    /^package\.json:\d+ testonly is used by tests only/,
    /^package\.json:\d+ @types\/idle is not used/,
    /^package\.json:\d+ dusty is not used/
  )
})

test('open ends are found in sources and documents, whole words only', async () => {
  const [todo, fixme] = ['TO' + 'DO', 'FIX' + 'ME']
  await finds(
    {
      'features/one/domain.ts': `// ${todo}: later\nexport const m${todo}s = 'mktemp ${'X'.repeat(6)}'\n`,
      'features/two/README.md': `# two\n\n${fixme}\n`
    },
    new RegExp(`^features/one/domain\\.ts:1 says ${todo}`),
    new RegExp(`^features/two/README\\.md:3 says ${fixme}`)
  )
})

test('a pack without public face, README or test is found', async () => {
  await finds(
    {
      'features/one/index.ts': undefined,
      'features/one/README.md': undefined,
      'test/features/one/one.test.ts': undefined,
      'test/features/two/two.test.ts': "import { test } from 'node:test'\nvoid test\n"
    },
    /^features\/one\/pack\.ts:1 the pack has no index\.ts/,
    /^features\/one\/pack\.ts:1 the pack has no README\.md/,
    /^features\/one\/pack\.ts:1 there is no test in test\/features\/one\//,
    /^features\/two\/pack\.ts:1 there is no test in test\/features\/two\//
  )
})
