/**
 * The pack table of README.md, made from the compiled packs: `node .ci/pack-table.mjs` compares (exit code 1 when it differs),
 * `--write` puts it in. A real kernel sets the packs up on a temporary home; what they register is what is shown.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const begin = '<!-- packs:begin -->'
const end = '<!-- packs:end -->'

const compiled = path => import(pathToFileURL(join(root, 'dist', path)).href)

async function rows() {
  const { loadDefaultPacks } = await compiled('features/default-packs.js')
  const { createKernel } = await compiled('kernel/kernel.js')
  const { recorded } = await compiled('test/helpers/declared.js')
  const { routesOf, typesOf } = await compiled('test/helpers/pack-facts.js')
  const observed = (await loadDefaultPacks()).map(pack => ({ ...recorded([pack]), pack }))
  const home = await mkdtemp(join(tmpdir(), 'svc-code-table-'))
  try {
    const kernel = await createKernel({
      home,
      packs: observed.flatMap(one => one.packs),
      port: 0,
      register: false,
      log: { level: 'silent' }
    })
    await kernel.start()
    const odd = kernel.features().filter(feature => feature.state !== 'Active')
    await kernel.stop()
    if (odd.length > 0) throw new Error(`not active: ${odd.map(({ name, meta }) => `${name} ${meta.error ?? ''}`).join(', ')}`)
  } finally {
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
  return observed.map(({ pack, declared }) => [
    `[${pack.name}](features/${pack.name}/README.md)`,
    pack.description ?? '',
    needsOf(pack),
    listed(routesOf(declared).map(short)),
    listed(typesOf(declared))
  ])
}

function needsOf({ needs, optional }) {
  const hard = Object.values(needs).map(token => token.id)
  const soft = Object.values(optional).map(token => `(${token.id})`)
  return [...hard, ...soft].join(', ')
}

const short = route => route.replace(' /api/v1/', ' ')
const listed = names => names.map(name => `\`${name}\``).join('<br>')

async function table() {
  const head = ['Pack', 'What it does', 'Needs (optional)', 'Routes below `/api/v1/`', 'Events and frames']
  const lines = [row(head), `|${'---|'.repeat(head.length)}`, ...(await rows()).map(row)]
  return [begin, ...lines, end].join('\n')
}

const row = cells => `|${cells.map(cell => (cell === '' ? ' ' : ` ${cell} `)).join('|')}|`

const file = join(root, 'README.md')
const readme = await readFile(file, 'utf8')
const from = readme.indexOf(begin)
const to = readme.indexOf(end)
if (from < 0 || to < from) throw new Error(`README.md must hold ${begin} and ${end}`)
const next = readme.slice(0, from) + (await table()) + readme.slice(to + end.length)
if (process.argv.includes('--write')) await writeFile(file, next)
else if (next !== readme) {
  const line = readme.slice(0, from).split('\n').length
  process.stderr.write(`README.md:${line} the pack table differs from the packs; run: npm run build && node .ci/pack-table.mjs --write\n`)
  process.exitCode = 1
}
