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

test('a computed import is found, outside the command line', async () => {
  await finds(
    {
      'features/one/domain.ts': 'export const any = (name: string) => import(name)\n',
      'features/loose.ts': "import '../kernel/index.ts'\n",
      'features/cli/load.ts': 'export const any = (name: string) => import(name)\n'
    },
    /^features\/one\/domain\.ts:1 imports a computed name/,
    /^features\/loose\.ts:1 stands in features\/ outside of a pack/
  )
})

test('the README of a pack names no file that is not there', async () => {
  await finds(
    { 'features/one/README.md': '# one\n\n`domain.ts`, `kernel/inner.ts` and `gone.ts`\n' },
    /^features\/one\/README\.md:3 names gone\.ts, which is not there/
  )
})

test('a folder of a pack that has a door is entered by it', async () => {
  await finds(
    {
      'features/one/room/index.ts': "export { inner } from './inner.ts'\n",
      'features/one/room/inner.ts': "import '../domain.ts'\nexport const inner = 1\n",
      'features/one/domain.ts': "import './room/index.ts'\nexport const later = () => import('./room/inner.ts')\n"
    },
    /^features\/one\/domain\.ts:2 features\/one\/room\/ is reached by its index\.ts only/
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
        "const name = 'maybe'",
        'export const later = () => import(name)',
        "export const state = name === 'idle' ? { now: 'idle' } : undefined",
        ''
      ].join('\n'),
      'test/features/one/more.test.ts': "import 'checker'\nimport 'testonly'\n"
    },
    /^package\.json:\d+ idle is not used/,
    /^package\.json:\d+ testonly is used by tests only/,
    /^package\.json:\d+ @types\/idle is not used/,
    /^package\.json:\d+ dusty is not used/
  )
})

test('a signal that Node keeps for good is found', async () => {
  await finds(
    { 'features/one/domain.ts': 'export const either = (a: AbortSignal, b: AbortSignal) => AbortSignal.any([a, b])\n' },
    /^features\/one\/domain\.ts:1 may stay in memory for good/
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
