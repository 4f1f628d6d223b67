/** What a fresh clone packs is a whole installation: it starts in an empty project, and its doors can be imported and compiled against. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { projectRoot } from '../../helpers/project-root.ts'
import { freshDir } from '../../helpers/temp.ts'

const root = fileURLToPath(projectRoot)
const installed = join(root, 'node_modules')

/** Somebody's pack with its test, against every door. */
const program = `
import { definePack } from 'svc-code/kernel'
import { packChecks, scriptedModel, startTestServer, toolCalls } from 'svc-code/kernel/testing'
import { createClient } from 'svc-code/client'
import { Agents, TurnHooks } from 'svc-code/features/agent'
import { ToolHooks } from 'svc-code/features/tools'
import { loadDefaultPacks } from 'svc-code/packs'
const mine = definePack({
  name: 'mine',
  needs: { agents: Agents, turns: TurnHooks, tools: ToolHooks },
  setup(ctx, { turns, tools }) {
    ctx.tap(turns.beforePrompt, async () => undefined)
    ctx.tap(tools.before, async () => ({ kind: 'deny', output: 'not here' }))
    ctx.tap(ctx.hooks.beforeRequest, async () => undefined)
  }
})
const ends: (() => unknown)[] = []
const model = scriptedModel(toolCalls({ name: 'Bash', args: { command: 'true' } }), 'done')
const server = await startTestServer({ after: end => void ends.push(end) }, { packs: [mine], model })
const { reason, results } = await server.prompt('go')
for (const end of ends) await end()
console.log(reason, results.map(one => one.output).join(), (await loadDefaultPacks()).length, typeof createClient, packChecks(mine, { others: [] }).length)
`

test('a clone packs a tarball without sources or tests, which runs, types and all, beside nothing but its dependencies', {
  skip: existsSync(join(root, '.git')) ? false : 'this is no clone'
}, async () => {
  const place = await freshDir()
  const [clone, project] = [join(place, 'clone'), join(place, 'my project #1 50%')]
  const run = (cwd: string, command: string, ...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', timeout: 120_000 })
    assert.equal(status, 0, `${command} ${args.join(' ')}: ${stdout}${stderr}`)
    return stdout
  }
  run(place, 'git', 'clone', '--quiet', root, clone)
  await symlink(installed, join(clone, 'node_modules')) // what `npm ci` would bring
  run(clone, 'npm', 'pack', '--silent', '--pack-destination', place)
  const tarball = (await readdir(place)).find(name => name.endsWith('.tgz')) ?? ''
  const files = run(place, 'tar', '-tzf', tarball).trim().split('\n')
  assert.deepEqual(
    files.filter(path => /^package\/(?:test|examples|dist\/test|dist\/examples)\/|(?<!\.d)\.ts$|\.map$|\.test\./.test(path)),
    []
  )
  assert.ok(['package/LICENSE', 'package/README.md', 'package/package.json'].every(path => files.includes(path)))

  const package_ = join(project, 'node_modules', 'svc-code')
  await mkdir(package_, { recursive: true })
  run(place, 'tar', '-xzf', tarball, '-C', package_, '--strip-components=1')
  // What the registry would bring: dependencies, and theirs.
  const lock = JSON.parse(await readFile(join(clone, 'package-lock.json'), 'utf8')) as { packages: Record<string, { dev?: boolean }> }
  const theirs = ['@types/node', 'undici-types'] // everybody who writes for Node has them
  for (const [path, { dev }] of Object.entries(lock.packages)) {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1]
    if (name === undefined || (dev && !theirs.includes(name)) || !existsSync(join(root, path))) continue
    await mkdir(dirname(join(project, path)), { recursive: true })
    await symlink(join(root, path), join(project, path))
  }
  await writeFile(join(project, 'package.json'), '{ "type": "module" }')
  const main = join(package_, 'dist', 'bundle', 'main.js')
  assert.match(run(project, process.execPath, main, '--version'), /^\d+\.\d+\.\d+$/m)
  assert.match(run(project, process.execPath, main, 'packs', '--home', join(place, 'home')), /^agent +not started/m)

  await writeFile(join(project, 'mine.ts'), program)
  const options = [
    '--strict',
    '--skipLibCheck',
    'false',
    '--lib',
    'es2022',
    '--module',
    'nodenext',
    '--target',
    'es2022',
    '--types',
    'node',
    'mine.ts'
  ]
  assert.equal(run(project, process.execPath, join(installed, 'typescript', 'bin', 'tsc'), ...options), '')
  assert.equal(run(project, process.execPath, 'mine.js'), 'completed not here 60 function 7\n')

  run(project, process.execPath, main, 'pack', 'new', 'note')
  const tests = "import assert from 'node:assert'\nimport pack from './pack.js'\nassert.equal(pack.name, 'note')\n"
  await writeFile(
    join(project, 'note', 'pack.js'),
    "import { definePack } from 'svc-code/kernel'\nexport default definePack({ name: 'note', setup() {} })\n"
  )
  await writeFile(join(project, 'note', 'pack.test.js'), tests)
  for (const name of ['pack.ts', 'pack.test.ts']) await rm(join(project, 'note', name))
  assert.match(run(join(project, 'note'), process.execPath, main, 'pack', 'test'), /its own tests passed/)
})
