/** A pack that cannot be imported is a failed pack: named with file and line, and the others run. */
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { deploymentPacks } from '../../../features/cli/deployment-packs.ts'
import { loadPacks } from '../../../features/cli/load-pack.ts'
import type { Feature } from '../../../kernel/index.ts'
import { createKernel } from '../../../kernel/kernel.ts'
import { run, serve } from '../../helpers/cli.ts'
import { freshDir } from '../../helpers/temp.ts'

const good = `import { definePack } from 'svc-code/kernel'
export default definePack({ name: 'good', setup() {} })
`

/** What becomes of these files, loaded as packs in this order, with `good` as the last one. */
async function featuresOf(files: Readonly<Record<string, string>>, importMs?: number): Promise<readonly Feature[]> {
  const dir = await freshDir()
  const home = join(dir, 'home')
  await mkdir(home)
  for (const [name, text] of Object.entries({ ...files, 'good.mjs': good })) {
    await mkdir(join(dir, name, '..'), { recursive: true })
    await writeFile(join(dir, name), text)
  }
  const load = [...Object.keys(files).filter(name => !/^(?:part|package)\b/.test(name)), 'good.mjs'].map(name => ({
    spec: `./${name}`,
    from: dir
  }))
  const packs = await deploymentPacks({ home, load, disable: [], require: [], replace: {}, config: {} }, { importMs })
  const kernel = await createKernel({ home, packs, port: 0, log: { level: 'silent' } })
  await kernel.start()
  try {
    return kernel.features().slice(-load.length)
  } finally {
    await kernel.stop()
  }
}

const faults: Readonly<Record<string, readonly [files: Record<string, string>, error: RegExp]>> = {
  'a throw at top level': [{ 'thrower.mjs': '// one\n// two\nthrow new Error("no licence")\n' }, /thrower\.mjs:3: no licence$/],
  'a throw of no error': [{ 'thrower.mjs': 'throw null\n' }, /thrower\.mjs: null$/],
  'a throw in a file that the pack imports': [
    { 'outer.mjs': 'import "./part.mjs"\n', 'part.mjs': '\nthrow new Error("inner")\n' },
    /part\.mjs:2: inner$/
  ],
  'a syntax error': [{ 'typo.mjs': 'const a = 1\nconst b = = 2\n' }, /typo\.mjs:2: .*Unexpected token/],
  'a syntax error in a file that the pack imports': [
    { 'outer.mjs': 'import { b } from "./part.mjs"\n', 'part.mjs': '\n\nexport const b = = 2\n' },
    /part\.mjs:3: .*Unexpected token/
  ],
  'a syntax error in TypeScript': [{ 'typo.ts': 'const a = 1\nconst b: number = = 2\n' }, /^\S+typo\.ts:2: [^/]*xpression expected/],
  'a syntax error in TypeScript that the pack imports': [
    { 'outer.ts': 'import { b } from "./part.ts"\n', 'part.ts': '\n\nexport const b: number = = 2\n' },
    /^\S+part\.ts:3: [^/]*xpression expected/
  ],
  'a module in a package that npm init made': [
    { 'made.js': 'import "svc-code/kernel"\n', 'package.json': '{ "type": "commonjs" }' },
    /made\.js:1: Cannot use import .*; name the file \.mjs, or put "type": "module" into its package\.json$/
  ],
  'an end of the process': [{ 'quitter.mjs': '\nprocess.exit(0)\n' }, /quitter\.mjs:2: it called process\.exit\(0\)$/],
  'an end of the process in a file that the pack imports': [
    { 'outer.mjs': 'import "./part.mjs"\n', 'part.mjs': '\nprocess.exit(0)\n' },
    /part\.mjs:2: it called process\.exit\(0\)$/
  ],
  'a missing file': [{ 'lost.mjs': '\nimport { x } from "./nowhere.mjs"\n' }, /lost\.mjs:2: .*Cannot find module .*nowhere\.mjs/],
  'a missing module': [{ 'lost.mjs': '\n\nimport x from "no-such-module-of-ours"\n' }, /lost\.mjs:3: .*Cannot find package/],
  'a door that there is none': [
    { 'lost.mjs': '\nimport { x } from "svc-code/features/skils"\n' },
    /lost\.mjs:2: Cannot find door 'svc-code\/features\/skils' \(there are kernel, /
  ],
  'a declaration that the kernel refuses': [
    { 'odd.mjs': 'import { named, Type } from "svc-code/kernel"\n\nnamed("bad name", Type.Object({}))\n' },
    /odd\.mjs:3: 'bad name' is no usable name/
  ],
  'a name that a module does not export': [
    { 'odd.mjs': '\nimport { x } from "./part.mjs"\n', 'part.mjs': 'export const y = 1\n' },
    /odd\.mjs:2: .*does not provide an export named 'x'/
  ],
  'no pack as its export': [
    { 'plain.mjs': 'export default { name: "plain", setup() {} }\n' },
    /plain\.mjs: .*no pack as its default export/
  ]
}
for (const [what, [files, error]] of Object.entries(faults)) {
  test(`${what} makes a failed pack with file and line, and the others run`, async () => {
    const [failed, next] = await featuresOf(files)
    assert.equal(failed?.state, 'Failed')
    assert.equal(failed?.name, Object.keys(files)[0]?.replace(/\.\w+$/, ''))
    assert.match(failed?.meta.error ?? '', error)
    assert.deepEqual(next, { name: 'good', state: 'Active', meta: {} })
  })
}

test('a top-level await without end is given up, and the others run', async () => {
  const [failed, next] = await featuresOf({ 'waiting.mjs': 'await new Promise(() => {})\nexport default 1\n' }, 1_000)
  assert.equal(failed?.name, 'waiting')
  assert.match(failed?.meta.error ?? '', /waiting\.mjs: .*longer than 1000 ms/)
  assert.equal(next?.state, 'Active')
})

test('a pack with the name of a default pack, or of one that was loaded before, fails; the first one keeps the name', async () => {
  const named = (name: string) =>
    `import { definePack } from 'svc-code/kernel'\nexport default definePack({ name: '${name}', setup() {} })\n`
  const features = await featuresOf({ 'mine.mjs': named('sessions'), 'first.mjs': named('twin'), 'sub/second.mjs': named('twin') })
  assert.deepEqual(
    features.map(one => [one.name, one.state]),
    [
      ['mine', 'Failed'],
      ['twin', 'Active'],
      ['second', 'Failed'],
      ['good', 'Active']
    ]
  )
  assert.match(features[0]?.meta.error ?? '', /mine\.mjs: a pack named 'sessions' is there already/)
})

test('the name of a built-in module is no pack', async () => {
  const home = await freshDir()
  for (const spec of ['os', 'node:os']) {
    const packs = await deploymentPacks({ home, load: [{ spec, from: home }], disable: [], require: [], replace: {}, config: {} })
    const failed = packs.at(-1)
    assert.equal(failed?.name, 'os')
    assert.throws(() => failed?.setup({} as never, {} as never), /os: .*no pack as its default export/)
  }
})

test('a name that no pack has stops the start, in what is disabled as in what is required', async () => {
  const none = { home: await freshDir(), load: [], disable: [], require: [], replace: {}, config: {} }
  for (const list of ['disable', 'require'])
    await assert.rejects(deploymentPacks({ ...none, [list]: ['tool-shell'] }), /unknown pack 'tool-shell' .*Did you mean tools-shell\?/)
})

test('a server starts without the packs that cannot be imported, says why, and ends when one of them is required', async t => {
  const dir = await freshDir()
  const home = join(dir, 'home')
  await mkdir(home, { mode: 0o700 })
  await writeFile(join(dir, 'thrower.mjs'), 'Promise.reject(new Error("nobody waits"))\nthrow new Error("no licence")\n')
  const later = (what: string) => `setTimeout(() => {\n  ${what}\n}, 1)\nawait new Promise(() => {})\n`
  await writeFile(join(dir, 'later.mjs'), later('throw new Error("later")'))
  await writeFile(join(dir, 'quitter.mjs'), later('process.exit(0)'))
  await writeFile(join(home, 'config.toml'), '[packs]\nload = ["../thrower.mjs", "./nowhere.mjs", "../later.mjs", "../quitter.mjs"]\n')
  const server = await serve(t, home, '--port', '0')
  assert.match(server.printed(), /thrower is Failed: .*thrower\.mjs:2: no licence\n/)
  assert.match(server.printed(), /nowhere is Failed: .*there is no file .*nowhere\.mjs\n/)
  assert.match(server.printed(), /later is Failed: .*later\.mjs:2: later\n/)
  assert.match(server.printed(), /quitter is Failed: .*quitter\.mjs:2: it called process\.exit\(0\)\n/)

  const required = await run(home, '--port', '0', '--require', 'thrower')
  assert.equal(required.code, 1)
  assert.match(required.stderr, /required packs are not active: thrower: .*thrower\.mjs:2: no licence/)
  const unknown = await run(home, '--port', '0', '--require', 'licence')
  assert.equal(unknown.code, 1)
  assert.match(unknown.stderr, /'licence'.*thrower.*no licence/s)
})

test('a module whose name gives a pack none fails as any other, and the others run', async () => {
  const dir = await freshDir()
  await writeFile(join(dir, 'good.mjs'), good)

  const { packs, failed } = await loadPacks(
    ['', './good.mjs'].map(spec => ({ spec, from: dir })),
    []
  )

  assert.deepEqual(
    packs.map(({ name }) => name),
    ['unnamed', 'good']
  )
  assert.match(failed.join(), /^unnamed: .*has no pack\.js/)
})
