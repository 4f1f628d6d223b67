/**
 * Makes the built-in model directory, `features/catalog/snapshot.ts`, from two published price tables and the list of chosen providers
 * and models in `catalog-snapshot.json`. Not part of the build: run by hand when the data is to be renewed, see the README of the pack.
 *
 *   npm pack @earendil-works/pi-ai && npm pack @pydantic/genai-prices      (anywhere; unpack both)
 *   node .ci/catalog-snapshot.mjs <folder of the first> <folder of the second> <date, YYYY-MM-DD>
 *
 * The first table is the source of every fact, the second a cross-check of prices. A model whose prices differ is left out, unless
 * `explained` says why the first table is right. What was left out, explained or could not be compared is printed.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const readJson = path => JSON.parse(readFileSync(path, 'utf8'))
const [table, check, date] = process.argv.slice(2)
if (!table || !check || !/^\d{4}-\d\d-\d\d$/.test(date ?? '')) {
  process.stderr.write('usage: node .ci/catalog-snapshot.mjs <folder of pi-ai> <folder of genai-prices> <YYYY-MM-DD>\n')
  process.exit(1)
}
const { providers, local, explained } = readJson(join(here, 'catalog-snapshot.json'))
const { calcPrice } = await import(pathToFileURL(resolve(check, 'dist/index.js')).href)

/** Rows of one provider of the first table by model id. */
function rowsOf(name) {
  const kinds = Object.values(readJson(join(table, `dist/providers/data/${name}.json`)))
  return new Map(kinds.flatMap(rows => Object.values(rows).flatMap(row => (row.type === 'chat' ? [[row.id, row]] : []))))
}

const resold = rowsOf('openrouter')

/** The price table of another provider may name a model with dots for dashes; a prefix is another model. */
const plain = id => id.toLowerCase().replaceAll('.', '-').replace(/^.*\//, '')

function secondOpinion(provider, id) {
  let found
  try {
    found = calcPrice({ input_tokens: 1, output_tokens: 1 }, id, {
      providerId: provider.crossCheck ?? provider.source ?? provider.id,
      timestamp: new Date(date)
    })
  } catch {
    return undefined
  }
  if (!found || plain(found.model.id) !== plain(id)) return undefined
  const { input_mtok, output_mtok, cache_read_mtok, cache_write_mtok } = found.model_price
  const base = price => (typeof price === 'object' ? price.base : price)
  return { input: base(input_mtok), output: base(output_mtok), cache_read: base(cache_read_mtok), cache_write: base(cache_write_mtok) }
}

/** A cache price of 0 means that the table has none. */
function costOf({ cost: { input, output, cacheRead, cacheWrite } }, second) {
  const cache_read = cacheRead || second?.cache_read
  const cache_write = cacheWrite || second?.cache_write
  return { input, output, ...(cache_read && { cache_read }), ...(cache_write && { cache_write }) }
}

/** The table cuts some windows where a price step begins; the row of a reseller of the same model has the whole one. */
function contextOf(row) {
  const step = row.cost.tiers?.[0]?.inputTokensAbove
  return row.contextWindow === step ? (resold.get(`${row.provider}/${row.id}`)?.contextWindow ?? row.contextWindow) : row.contextWindow
}

/**
 * How the model can be told to think, in the words of the directory. The table maps its own levels: a missing one is the ordinary one of
 * that name, null is none. `off`: null is a model that always thinks, a word is one more effort, missing is a plain switch.
 */
function reasoningOf({ reasoning, thinkingLevelMap: map, compat }) {
  if (reasoning !== true) return {}
  const levels = map && compat?.supportsReasoningEffort !== false ? ['minimal', 'low', 'medium', 'high', 'xhigh', 'max'] : []
  const ordinary = ['low', 'medium', 'high']
  const values = levels.flatMap(level => (map[level] === undefined && ordinary.includes(level) ? [level] : (map[level] ?? [])))
  const none = map?.off === 'none' && values.length > 0
  const options = [
    ...(values.length > 0 ? [{ type: 'effort', values: none ? ['none', ...values] : values }] : []),
    ...(map?.off === null || none ? [] : [{ type: 'toggle' }])
  ]
  return { reasoning: true, ...(options.length > 0 && { reasoning_options: options }) }
}

function modelOf(row, second) {
  return {
    id: row.id,
    name: row.name.replace(/^[^:]+: | \(latest\)$/g, ''),
    ...reasoningOf(row),
    tool_call: true,
    modalities: { input: row.input, output: ['text'] },
    limit: { context: contextOf(row), output: row.maxTokens },
    cost: costOf(row, second)
  }
}

const say = text => process.stdout.write(`${text}\n`)
const counts = { models: 0, compared: 0 }

function entryOf(provider) {
  const { id, name, npm, type, env, api, models } = provider
  const rows = rowsOf(provider.source ?? id)
  const lines = models.flatMap(model => {
    const row = rows.get(model)
    if (!row) throw new Error(`${id} has no model ${model}`)
    const second = secondOpinion(provider, model)
    const cost = costOf(row, second)
    const different = Object.keys(second ?? {}).filter(key => second[key] !== undefined && (cost[key] ?? cost.input) !== second[key])
    const reason = explained[`${id}/${model}`]
    if (different.length > 0) {
      const both = different.map(key => `${key} ${cost[key]} and ${second[key]}`).join(', ')
      say(`${id}/${model}: ${both}; ${reason ?? 'left out'}`)
      if (!reason) return []
    }
    counts.models++
    if (second) counts.compared++
    else say(`${id}/${model}: not in the second table`)
    return [`${JSON.stringify(model)}:${JSON.stringify(modelOf(row, second))}`]
  })
  const head = JSON.stringify({ id, name, ...(npm && { npm }), ...(type && { type }), env, api })
  return `${JSON.stringify(id)}:${head.slice(0, -1)},"models":{\n${lines.join(',\n')}\n}}`
}

const entries = [...providers.map(entryOf), ...Object.entries(local).map(([id, entry]) => `${JSON.stringify(id)}:${JSON.stringify(entry)}`)]
const document = `{\n${entries.join(',\n')}\n}`
JSON.parse(document)
if (/[`\\]|\$\{/.test(document)) throw new Error('the data would not survive in a template')

const source = folder => readJson(join(folder, 'package.json'))
const named = folder => `${source(folder).name} ${source(folder).version}`
const made = readJson(join(table, 'dist/providers/data/.manifest.json')).generatedAt.slice(0, 10)
writeFileSync(
  join(here, '../features/catalog/snapshot.ts'),
  `/**
 * Built-in model directory of ${date}: well-known public providers with context sizes and prices (USD per million tokens), then how to
 * reach a model server on this machine (common ports; the size is a guess, most serve one model under any name).
 *
 * Made by \`.ci/catalog-snapshot.mjs\`, which says how to make it again, from the npm package ${named(table)} (MIT,
 * its data is of ${made}); prices compared with ${named(check)} (MIT). Written by that script: do not edit.
 */

/** The document as text, in the shape of the live directory's \`api.json\`. */
export const snapshot = \`${document}\`
`
)
say(`${providers.length} providers, ${counts.models} models, ${counts.compared} of them compared; ${document.length} bytes`)
