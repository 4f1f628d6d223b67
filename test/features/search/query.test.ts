/** Searches over documents in memory, against looking at every one of them. */
import assert from 'node:assert/strict'
import { appendFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Corpus, type Document, keyOf } from '../../../features/search/corpus.ts'
import { beginning, type Found, readOn, textAt } from '../../../features/search/journal.ts'
import { search } from '../../../features/search/query.ts'
import type { Page, Query } from '../../../features/search/ranking.ts'
import { snippetOf } from '../../../features/search/snippet.ts'
import { queryTerms } from '../../../features/search/tokens.ts'
import { freshDir } from '../../helpers/temp.ts'

const long = 'pomegranate'.repeat(8)
const words = ['fig', 'figs', 'plum', 'pear', 'kiwi', 'quince', 'medlar', long]

/** Numbers below `n`, the same ones in each run. */
function numbers() {
  let seed = 7
  return (n: number) => {
    seed = (seed * 1103515245 + 12345) % 2 ** 31
    return Math.floor((seed / 2 ** 31) * n)
  }
}

function fill(texts: readonly string[]) {
  const corpus = new Corpus()
  const documents = texts.map((text, n) =>
    corpus.add({ session_id: `s${n % 3}`, agent_id: 'main', number: n, role: 'user', time: n % 40, at: 0 }, text)
  )
  return { corpus, documents }
}

/** One page; a machine that stands still does not count. */
function page(corpus: Corpus, query: Partial<Query> & Pick<Query, 'text' | 'mode'>): Page {
  const whole = { op: 'AND', sort: 'score', fits: () => true, size: 7, end: corpus.end, ...query } as const
  for (;;) {
    const found = search(whole, { corpus, textOf: ({ text }) => text ?? '', terms: queryTerms(query.text) })
    if (found.incomplete !== 'deadline') return found
  }
}

function allPages(corpus: Corpus, query: Partial<Query> & Pick<Query, 'text' | 'mode'>) {
  const hits: Page['hits'][number][] = []
  let position: Page['position']
  do {
    const found = page(corpus, { ...query, after: position })
    assert.equal(found.incomplete, undefined)
    assert.equal(found.has_more, found.position !== undefined)
    hits.push(...found.hits)
    position = found.position
  } while (position)
  return hits
}

const byKey = (a: Document, b: Document) => (keyOf(a) < keyOf(b) ? -1 : 1)

test('terms find what looking at every document finds, with its score, in its order, page by page', () => {
  const below = numbers()
  const texts = Array.from({ length: 300 }, () => Array.from({ length: 1 + below(9) }, () => words[below(words.length)]).join(' '))
  const { corpus, documents } = fill(texts)
  const gone = documents.filter((_, n) => n % 11 === 0)
  for (const document of gone) corpus.remove(document)
  for (let round = 0; round < 40; round++) {
    const terms = [...new Set(Array.from({ length: 1 + below(3) }, () => words[below(words.length)] as string))]
    const op = round % 2 === 0 ? 'AND' : 'OR'
    const sort = (['score', 'time_desc', 'time_asc'] as const)[round % 3] as Query['sort']
    const lists = texts.map(text => text.split(' '))
    const weights = terms.map(term => Math.log(1 + texts.length / lists.filter(list => list.includes(term)).length))
    const expected = documents
      .filter(document => !gone.includes(document))
      .map(document => {
        const list = lists[document.number] as string[]
        const counts = terms.map(term => list.filter(word => word === term).length)
        const score = counts.reduce((sum, count, n) => sum + (count / list.length) * (weights[n] as number), 0)
        return { document, score, fits: op === 'AND' ? counts.every(count => count > 0) : score > 0 }
      })
      .filter(({ fits }) => fits)
    const found = allPages(corpus, { text: terms.join(' '), mode: 'terms', op, sort })
    const scores = new Map(found.map(({ document, score }) => [document, score]))
    assert.deepEqual(found.map(({ document }) => document.number).sort(), expected.map(({ document }) => document.number).sort())
    for (const { document, score } of expected) assert.ok(Math.abs((scores.get(document) as number) - score) < 1e-9)
    const order = found.map(({ document, score }) => ({ document, key: sort === 'score' ? score : 0 }))
    order.sort((a, b) => {
      const time = a.document.time - b.document.time
      return b.key - a.key || (sort === 'time_asc' ? time : -time) || byKey(a.document, b.document)
    })
    assert.deepEqual(
      found.map(({ document }) => document.number),
      order.map(({ document }) => document.number)
    )
  }
})

test('a literal text finds what looking at every document finds, newest first, also in words longer than a term', () => {
  const below = numbers()
  const gaps = [' ', '_', ', ', '数据', '']
  const texts = Array.from({ length: 300 }, () =>
    Array.from({ length: 1 + below(6) }, () => `${words[below(words.length)]}${gaps[below(gaps.length)]}`).join('')
  )
  const { corpus, documents } = fill(texts)
  const needles = Array.from({ length: 60 }, () => {
    const text = texts[below(texts.length)] as string
    const from = below(text.length)
    return text.slice(from, from + 2 + below(90))
  })
  for (const needle of [...needles, ` ${long} `, `${long}_`, 'nothing']) {
    const expected = documents.filter(({ number }) => texts[number]?.includes(needle)).sort((a, b) => b.time - a.time || byKey(a, b))
    const found = allPages(corpus, { text: needle, mode: 'literal' })
    assert.deepEqual(
      found.map(({ document }) => document.number),
      expected.map(({ number }) => number),
      needle
    )
  }
})

test('a literal search that has seen ten thousand candidates says so, and its next page goes on behind them', () => {
  const corpus = new Corpus()
  for (let n = 0; n < 10_050; n++)
    corpus.add({ session_id: 's', agent_id: 'main', number: n, role: 'user', time: n, at: 0 }, n === 3 ? 'fig 7' : 'fig 8')
  const first = page(corpus, { text: 'fig 7', mode: 'literal' })
  assert.deepEqual([first.hits, first.has_more, first.incomplete], [[], true, 'candidate_cap'])
  const second = page(corpus, { text: 'fig 7', mode: 'literal', after: first.position })
  assert.deepEqual([second.hits.map(({ document }) => document.number), second.has_more, second.incomplete], [[3], false, undefined])
})

test('a literal search whose time is over before it has looked at anything still goes on page by page', t => {
  const { corpus } = fill(['fig one', 'fig two', 'plum'])
  let now = 0
  t.mock.method(performance, 'now', () => {
    now += 1000
    return now
  })
  const wanted = { text: 'fig', mode: 'literal', op: 'AND', sort: 'score', fits: () => true, size: 7, end: corpus.end } as const
  const found: number[] = []
  let position: Page['position']
  for (let pages = 0; pages < 3; pages++) {
    const next = search({ ...wanted, after: position }, { corpus, textOf: ({ text }) => text ?? '', terms: [] })
    assert.equal(next.has_more, next.position !== undefined)
    found.push(...next.hits.map(({ document }) => document.number))
    position = next.position
    if (!position) break
  }
  assert.deepEqual(found, [1, 0])
  assert.equal(position, undefined)
})

test('a snippet shows the word that was found, however long it is', () => {
  const shown = snippetOf(`${'before '.repeat(40)}${long} ${'after '.repeat(40)}`, 'terms', queryTerms(long))
  assert.ok(shown.includes(long), shown)
  const found = snippetOf(`${'数'.repeat(200)}连接${'库'.repeat(200)}`, 'terms', queryTerms('连接'))
  assert.ok(found.includes('连接') && found.startsWith('…') && found.endsWith('…'), found)
})

test('a journal is told by the numbers of its records, and a text is read again from its place', async () => {
  const file = join(await freshDir(), 'wire.jsonl')
  const message = (text: string, more: object = {}) =>
    `${JSON.stringify({ type: 'message', role: 'user', content: [{ type: 'text', text }], time: 5, ...more })}\n`
  const wide = `${'数'.repeat(15_000)} the end` // more than is read at once
  const first = message('one', { number: 4 })
  await writeFile(file, `${first}${message(wide)}${message('three', { number: 5 })}${message('far', { number: 9_000_000 })}`)
  const found: Found[] = []
  let cursor = beginning(1)
  const read = async () => {
    for await (const step of readOn(file, cursor)) {
      found.push(...step.found)
      cursor = step.cursor
    }
  }
  await read()
  const { length } = found
  await appendFile(file, '{"type":"context.undone","from":5}\n{"type":"message","role":"user"')
  await read()
  const numbers = found.map(each => (each.kind === 'document' ? each.number : `from ${each.from}`))
  assert.deepEqual([length, numbers], [4, [4, 5, 6, 7, 'from 5']])
  assert.equal(textAt(file, Buffer.byteLength(first)), wide)
})
