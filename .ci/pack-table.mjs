/**
 * What the documents say of all packs, made from the compiled packs: the table of docs/pack-table.md, and the error codes of docs/errors.md.
 * `node .ci/pack-table.mjs` compares (exit code 1 when they differ), `--write` puts them in. A real kernel sets the packs up on a temporary
 * home; what they register is what is shown.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const compiled = path => import(pathToFileURL(join(root, 'dist', path)).href)

/** The default packs, each with what it declared. */
async function observe() {
  const { loadDefaultPacks } = await compiled('features/default-packs.js')
  const { createKernel } = await compiled('kernel/kernel.js')
  const { recorded } = await compiled('test/helpers/declared.js')
  const observed = (await loadDefaultPacks()).map(pack => ({ ...recorded([pack]), pack }))
  const home = await mkdtemp(join(tmpdir(), 'svc-code-table-'))
  try {
    const packs = observed.flatMap(one => one.packs)
    const kernel = await createKernel({ home, packs, port: 0, register: false, log: { level: 'silent' } })
    await kernel.start()
    // Some specs are made anew at each look, while their pack is active.
    for (const one of observed) one.errors = errorsOf(one)
    const odd = kernel.features().filter(feature => feature.state !== 'Active')
    await kernel.stop()
    if (odd.length > 0) throw new Error(`not active: ${odd.map(({ name, meta }) => `${name} ${meta.error ?? ''}`).join(', ')}`)
  } finally {
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
  return observed
}

function errorsOf({ pack, declared }) {
  const asked = [...declared.routes, ...declared.frames]
  return [...pack.errors, ...asked.flatMap(({ errors = [], invalid = [] }) => errors.concat(invalid))]
}

/** One table per area, areas and packs in the order of the default packs. */
async function packTables(observed) {
  const { routesOf, typesOf } = await compiled('test/helpers/pack-facts.js')
  const areas = new Map()
  for (const { pack, declared } of observed) {
    const rows = areas.get(pack.area ?? 'Other') ?? []
    const name = `[${pack.name}](../features/${pack.name}/README.md)`
    rows.push([name, pack.description ?? '', needsOf(pack), listed(routesOf(declared).map(short)), listed(typesOf(declared))])
    areas.set(pack.area ?? 'Other', rows)
  }
  const head = ['Pack', 'What it does', 'Needs (optional)', 'Routes below `/api/v1/`', 'Events and frames']
  return [...areas].map(([area, rows]) => `## ${area}\n\n${table(head, rows)}`).join('\n\n')
}

function needsOf({ needs, optional }) {
  const hard = Object.values(needs).map(token => token.id)
  const soft = Object.values(optional).map(token => `(${token.id})`)
  return [...hard, ...soft].join(', ')
}

/** Every code that a pack, the kernel or the door to packs in processes of their own declares, ascending, with who answers it. */
async function codeTable(observed) {
  const { generalErrors } = await compiled('kernel/errors.js')
  const codes = new Map()
  const add = (spec, name) => {
    const known = codes.get(spec.code) ?? { ...spec, statuses: new Set(), packs: new Set() }
    known.statuses.add(spec.status)
    known.packs.add(name)
    codes.set(spec.code, known)
  }
  for (const spec of generalErrors) add(spec, 'every route')
  add((await compiled('features/cli/isolation/door.js')).PackEnded, 'packs in processes of their own')
  for (const { pack, errors } of observed) {
    for (const spec of errors) if (!generalErrors.some(({ code }) => code === spec.code)) add(spec, pack.name)
  }
  const rows = [...codes.values()]
    .sort((a, b) => a.code - b.code)
    .map(({ code, name, message, statuses, packs }) => [
      String(code),
      `\`${name}\``,
      message,
      [...statuses].sort((a, b) => a - b).join(', '),
      [...packs].sort().join(', ')
    ])
  return table(['Code', 'Name', 'Text', 'HTTP', 'Answered by'], rows)
}

const short = route => route.replace(' /api/v1/', ' ')
const listed = names => names.map(name => `\`${name}\``).join('<br>')
const table = (head, rows) => [row(head), `|${'---|'.repeat(head.length)}`, ...rows.map(row)].join('\n')
const row = cells => `|${cells.map(cell => (cell === '' ? ' ' : ` ${cell} `)).join('|')}|`

/** Puts a text between the two marks of a document, or says that it differs. */
async function put(path, mark, text) {
  const file = join(root, path)
  const found = await readFile(file, 'utf8')
  const [begin, end] = [`<!-- ${mark}:begin -->`, `<!-- ${mark}:end -->`]
  const [from, to] = [found.indexOf(begin), found.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`${path} must hold ${begin} and ${end}`)
  const next = `${found.slice(0, from)}${begin}\n${text}\n${found.slice(to)}`
  if (process.argv.includes('--write')) await writeFile(file, next)
  else if (next !== found) {
    const line = found.slice(0, from).split('\n').length
    process.stderr.write(`${path}:${line} the table differs from the packs; run: npm run build && node .ci/pack-table.mjs --write\n`)
    process.exitCode = 1
  }
}

const observed = await observe()
await put('docs/pack-table.md', 'packs', await packTables(observed))
await put('docs/errors.md', 'codes', await codeTable(observed))
