/** The bundle starts with the code that V8 kept of it, and runs what its files say all the same. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { projectRoot } from '../../helpers/project-root.ts'
import { freshDir } from '../../helpers/temp.ts'

const root = fileURLToPath(projectRoot)

/** A copy of the installation. */
async function installed(): Promise<string> {
  const dir = await freshDir()
  await symlink(join(root, 'node_modules'), join(dir, 'node_modules'))
  await cp(join(root, 'package.json'), join(dir, 'package.json'))
  await cp(join(root, 'dist', 'bundle'), join(dir, 'dist', 'bundle'), { recursive: true, filter: path => !path.endsWith('.map') })
  return join(dir, 'dist', 'bundle')
}

function node(args: string[], home = '/nowhere') {
  const env = { ...process.env, SVC_CODE_HOME: home, SVC_CODE_CATALOG_URL: 'off' }
  return spawnSync(process.execPath, args, { env, encoding: 'utf8', timeout: 20_000 })
}

interface Watched {
  readonly used: string[]
  readonly compiled: string[]
  readonly limit: number
}

const watched = (before = '') => `
    ${before}
    const vm = require('node:vm')
    const used = [], compiled = []
    vm.Script = class extends vm.Script {
      constructor(text, options) {
        super(text, options)
        const list = options.cachedData && this.cachedDataRejected === false ? used : compiled
        list.push(/(\\w+)[^/]*$/.exec(options.filename)[1])
      }
    }
    process.stdout.write = text => /listening/.test(text) && process.kill(process.pid, 'SIGTERM')
    process.on('exit', () => process.stderr.write(JSON.stringify({ used, compiled, limit: require('node:v8').getHeapStatistics().heap_size_limit })))
    process.argv = [process.execPath, 'svc-code', '--port', '0']
    require(${JSON.stringify(join(root, 'dist', 'bundle', 'load.js'))}).load('cli.js')`

test('the kept code is used for the command line, the kernel and every pack, also where the heap has a limit, which holds', async () => {
  for (const flags of [[], ['--max-old-space-size=200']]) {
    const { used, compiled, limit } = JSON.parse(node([...flags, '-e', watched()], await freshDir()).stderr) as Watched
    for (const name of ['cli', 'base', 'pack']) assert.deepEqual([used.includes(name), compiled.includes(name)], [true, false], name)
    assert.equal(limit < 400 * 2 ** 20, flags.length > 0)
  }
})

test('code that another release of Node has kept is not run, whatever V8 thinks of it', async () => {
  const other = watched("Object.defineProperty(process, 'version', { value: 'v20.0.0' })")
  const { used, compiled } = JSON.parse(node(['-e', other], await freshDir()).stderr) as Watched
  assert.deepEqual([used, compiled.includes('cli')], [[], true])
})

test('a file that was changed runs as it is now, and without kept code everything runs', async () => {
  const bundle = await installed()
  const text = await readFile(join(bundle, 'cli.js'), 'utf8')
  await writeFile(join(bundle, 'cli.js'), text.replace('`svc-code: $', '`SVC-CODE: $'))
  assert.match(node([join(bundle, 'main.js'), '--nonsense']).stderr, /^SVC-CODE: /)

  for (const kept of ['{"madeBy":"?","files":{"cli.js":[0,99,"?"]}}      44', 'nothing', '']) {
    await writeFile(join(bundle, 'code.bin'), kept)
    assert.match(node([join(bundle, 'main.js'), '--nonsense']).stderr, /^SVC-CODE: /)
  }
  await rm(join(bundle, 'code.bin'))
  assert.match(node([join(bundle, 'main.js'), '--nonsense']).stderr, /^SVC-CODE: /)
})

test('with source maps stacks name the sources', () => {
  const wrong = `try { require(${JSON.stringify(join(root, 'dist', 'bundle', 'load.js'))}).load('kernel.js').named('bad name', {}) } catch (e) { console.log(e.stack) }`
  assert.match(node(['--enable-source-maps', '-e', wrong]).stdout, /kernel\/shapes\.ts:\d+/)
})
