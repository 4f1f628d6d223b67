/**
 * Bundles the server into dist/bundle: some 50 files load in less than half the time of 400, and in half of that again with the code that V8 kept of
 * them (`load.js`), for which they are CommonJS. What runs is this bundle: `npm start`, the installed command, and the doors in package.json,
 * so that a third-party pack meets the very kernel that runs. Packs stay apart: a disabled one is never read. All files lie flat, because
 * modules find their neighbours (workers, package.json) by `import.meta.url`. The client and the workers stay ES modules of their own.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { rolldown } from 'rolldown'
import { parseAst } from 'rolldown/parseAst'

const packs = readdirSync('features').filter(name => existsSync(join('features', name, 'pack.ts')))
const workers = packs.flatMap(pack =>
  readdirSync(join('features', pack)).flatMap(file =>
    /-worker\.ts$/.test(file) ? [[file.slice(0, -3), join('features', pack, file)]] : []
  )
)

/**
 * What every server loads: the kernel, the list of packs and their public faces, with all that they import. One file, so that each has one
 * instance.
 */
const isBase = id =>
  /^(?:kernel\/(?!testing)[^.]*|features\/(?:[^/]+\/index|default-packs))\.ts$/.test(relative(process.cwd(), id).replaceAll('\\', '/'))

/** A file of ASCII alone is read and compiled as it is; one other character doubles what V8 holds of it. */
const inAscii = code => code.replace(/[^\0-\x7f]/g, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Node imports only for modules that it has loaded itself; `load.js` is one. */
function throughLoader(code) {
  const places = []
  const visit = node => {
    if (node?.type === 'ImportExpression') places.push(node.start)
    for (const part of Object.values(node)) if (typeof part === 'object' && part !== null) visit(part)
  }
  if (code.includes('import(')) visit(parseAst(code))
  if (places.length === 0) return code
  const changed = [0, ...places].map((from, index) => code.slice(from, places[index])).join('$')
  return changed.replace('"use strict";', '"use strict";const { $import } = require("./load.js");')
}

/** What a file exports is there when it has run and never changes: a value says so in a third of the text and memory of a getter. */
const asValues = code =>
  code.replace(
    /^Object\.defineProperty\(exports, ("[^"]+"), \{\n\s*enumerable: true,\n\s*get: function\(\) \{\n\s*return ([\w$]+);\n\s*\}\n\}\);$/gm,
    'exports[$1] = $2;'
  )

/** Native parts and programs are found beside their own package.json; of `ws`, bundlers of web pages take what it has for browsers. */
const external = ['level', '@vscode/ripgrep', 'node-pty']
const externalOfClient = [...external, 'ws']
const dir = join('dist', 'bundle')
const started = Date.now()

/** Writes the chunks of some sources, each with its code changed by `change`; resolves to what each source exports. */
async function write(input, output, { change = code => code, external: apart = external } = {}) {
  const finish = {
    name: 'finish',
    generateBundle(_, files) {
      for (const file of Object.values(files)) if (file.type === 'chunk') file.code = change(inAscii(file.code))
    }
  }
  const bundle = await rolldown({ input, platform: 'node', external: apart, logLevel: 'warn' })
  const written = await bundle.write({ dir, sourcemap: true, comments: false, plugins: [finish], ...output })
  await bundle.close()
  return new Map(written.output.flatMap(chunk => (chunk.isEntry ? [[chunk.name, chunk.exports]] : [])))
}

/** What packs import by the name of a door: the very instance that runs. */
function door(name, names) {
  const lines = names.filter(one => one !== 'default').map(one => `export const ${one} = door.${one}`)
  return `import { load } from './load.js'\nconst door = load('${name}.js')\n${lines.join('\n')}\n`
}

/**
 * A server that runs reads parts of its bundle when they are first used: those of the build before stay, with their hashes in their names, so that a
 * build takes nothing from it. `--clean` (what is published): nothing stays.
 */
const generation = join('dist', 'bundle-files.json')
const before = process.argv.includes('--clean') || !existsSync(generation) ? [] : JSON.parse(readFileSync(generation, 'utf8'))
mkdirSync(dir, { recursive: true })
for (const name of readdirSync(dir)) if (!before.includes(name)) rmSync(join(dir, name), { recursive: true, force: true })
writeFileSync(join(dir, 'package.json'), '{ "type": "commonjs" }\n')
await write(
  { client: 'client/index.ts', ...Object.fromEntries(workers) },
  { format: 'esm', entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' },
  { external: externalOfClient }
)
for (const [name] of workers) writeFileSync(join(dir, `${name}.js`), `void import('./${name}.mjs')\n`)
await write({ load: 'features/cli/load-bundle.ts' }, { format: 'cjs', strict: true, entryFileNames: '[name].js' })
const exported = await write(
  {
    cli: 'features/main.ts',
    kernel: 'kernel/index.ts',
    'kernel-testing': 'testing/index.ts',
    'resolve-self': 'features/cli/resolve-self.ts',
    packs: 'features/default-packs.ts',
    'pack-hooks': 'features/cli/pack-hooks.ts',
    'child-main': 'features/cli/isolation/child-main.ts',
    ...Object.fromEntries(packs.map(name => [`features-${name}`, `features/${name}/index.ts`]))
  },
  {
    format: 'cjs',
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
    strict: true,
    codeSplitting: { groups: [{ name: 'base', test: isBase }] }
  },
  { change: code => asValues(throughLoader(code)) }
)
const start = (when, name) => `const { load, startHooks } = require('./load.js')\n${when}startHooks()\nload('${name}')\n`
writeFileSync(join(dir, 'isolated.js'), start('', 'child-main.js'))
writeFileSync(join(dir, 'main.js'), `#!/usr/bin/env node\n${start("if (process.argv.includes('--pack')) ", 'cli.js')}`, { mode: 0o755 })
for (const [name, names] of exported)
  if (/^(kernel|features-|packs$)/.test(name)) writeFileSync(join(dir, `${name}.mjs`), door(name, names))

const isHashed = name => /-[\w-]{8}\.m?js$/.test(name)
const made = readdirSync(dir).filter(name => isHashed(name) && statSync(join(dir, name)).mtimeMs >= started)
writeFileSync(generation, JSON.stringify(made))

const { NODE_OPTIONS: _, ...env } = process.env
const kept = spawnSync(process.execPath, [join('.ci', 'keep-code.mjs')], { env, stdio: 'inherit', timeout: 60_000 })
if (kept.status !== 0) process.stderr.write('the code of the bundle could not be kept: it starts all the same, but slower\n')
