/** Large answers: the same bytes, made in slices. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { defineRoute } from '../../kernel/contract.ts'
import { answerText, LargeText, partedList, partedText } from '../../kernel/http/large-json.ts'
import { Type } from '../../kernel/shapes.ts'
import { startHttp } from './http-fixture.ts'

const long = (unit: string, chars = 700_000) => unit.repeat(Math.ceil(chars / unit.length))

test('an answer in parts is what JSON says, whatever its texts and shapes are', async () => {
  const values: unknown[] = [
    long('a'),
    long('世😀é"\\\n\u0007\u2028'),
    `x${long('😀')}`,
    `${long('\ud83d')}${long('\udc00')}`,
    [long('a'), undefined, null, [], {}, [long('b')]],
    { a: undefined, f: () => 0, s: Symbol('s'), 'ke"y\n': long('v'), n: { list: [1, { deep: long('d') }, 2], none: undefined }, e: {} },
    { text: long('a'), at: new Date(0), own: { toJSON: () => ({ shown: long('t') }) }, nan: Number.NaN, flag: true },
    Object.assign(Object.create({ inherited: long('i') }), { own: 1 }),
    { list: Array.from({ length: 300 }, (_, n) => ({ n, text: long('tool output ', 5000) })) }
  ]
  for (const [at, value] of values.entries()) {
    const text = answerText(value)
    assert.ok(text instanceof LargeText, String(at))
    assert.equal(await text.whole(), JSON.stringify(value), String(at))
  }
  for (const small of ['', long('a', 1000), { many: Array.from({ length: 5000 }, () => 'short text') }, null, 5, undefined])
    assert.equal(answerText(small), JSON.stringify(small))
})

test('a text in parts stands for the text, in a large answer and in a small one', async () => {
  const parts = [long('世"\n'), long('😀'), 'end']
  const whole = { file: { content: parts.join(''), size: 3 }, list: [parts.join('')] }
  const given = { file: { content: partedText(parts), size: 3 }, list: [partedText(parts)] }
  const text = answerText(given)
  assert.equal(text instanceof LargeText && (await text.whole()), JSON.stringify(whole))
  assert.equal(
    JSON.stringify({ small: partedText(['a', 'b']), empty: partedText([]), one: partedText(['c']) }),
    '{"small":"ab","empty":"","one":"c"}'
  )
})

test('a list that does not change is made item by item, with lists and texts in it; a short one at once', async () => {
  const match = (n: number) => ({ line: n, text: `"${n}"`, before: [undefined, '世'], none: undefined })
  const files = (parted: <T>(items: T[], chars: number) => T[]) => ({
    files: parted(
      Array.from({ length: 50 }, (_, n) => ({
        path: `f${n}`,
        matches: parted(
          Array.from({ length: n * 4 }, (_, at) => match(at)),
          n * 400
        )
      })),
      600_000
    ),
    others: parted([undefined, null, [], 'x', long('t'), parted([], 0), { deep: parted([1, [2]], 5) }], 700_000),
    more: 1
  })
  const text = answerText(files(partedList))
  assert.ok(text instanceof LargeText)
  assert.equal(await text.whole(), JSON.stringify(files(items => items)))
  assert.equal(answerText({ few: partedList([1, { a: 2 }], 20) }), '{"few":[1,{"a":2}]}')

  const many = answerText(
    partedList(
      Array.from({ length: 100_000 }, (_, n) => match(n)),
      5_000_000
    )
  )
  assert.ok(many instanceof LargeText)
  let turns = 0
  const count = () => {
    turns++
    immediate = setImmediate(count)
  }
  let immediate = setImmediate(count)
  const parts = await many.made()
  clearImmediate(immediate)
  assert.ok(parts.length > 10 && parts.every(({ length }) => length < 600_000))
  assert.ok(turns >= 2, `others had ${turns} turns`)
})

test('an answer in parts is what was true when it was given, and others have their turn while it is made', async t => {
  const answer = { text: long('世', 6_000_000), count: 1, list: [1, 2] }
  const route = defineRoute({ method: 'GET', path: '/api/v1/large', summary: 'large', data: Type.Unknown() })
  const http = await startHttp(t)
  let turns = 0
  http.mount([
    route,
    () => {
      const count = () => {
        answer.count++
        answer.list.push(3)
        if (++turns < 10) setImmediate(count)
      }
      setImmediate(count)
      return answer
    }
  ])
  const { text, headers } = await http.send('GET', '/api/v1/large')
  assert.ok(turns >= 10)
  assert.equal(Number(headers['content-length']), Buffer.byteLength(text))
  const { data } = JSON.parse(text) as { data: typeof answer }
  assert.deepEqual([data.count, data.list, data.text === answer.text], [1, [1, 2], true])
  const head = await http.send('HEAD', '/api/v1/large')
  assert.equal(head.text, '')
})

test('an answer with very much text is made as its client takes it, and one that stands still holds up nobody', async t => {
  const text = long('世"', 20_000_000)
  const http = await startHttp(t)
  const route = (path: string, data: unknown) =>
    [defineRoute({ method: 'GET', path, summary: path, data: Type.Unknown() }), () => data] as const
  http.mount(route('/api/v1/large', { text }), route('/api/v1/huge', { text: long('x', 60_000_000) }), route('/api/v1/small', 1))
  assert.ok((JSON.parse((await http.send('GET', '/api/v1/large')).text) as { data: { text: string } }).data.text === text)

  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const inUse = () => {
    for (let n = 0; n < 3; n++) collect() // buffers are freed beside a collection, which the next one waits for
    return process.memoryUsage().arrayBuffers
  }
  const before = inUse()
  const asked = get({ port: http.port, path: '/api/v1/huge', headers: { authorization: `Bearer ${http.token}` } })
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  for (let n = 0; n < 50; n++) assert.equal((await http.send('GET', '/api/v1/small')).json.data, 1)
  const grown = inUse() - before
  assert.ok(grown < 30_000_000, `${grown} bytes wait for the client`)
  answer.destroy()
})

test('an answer that fails while its client takes it is cut, and put down to its pack', async t => {
  const http = await startHttp(t, { strict: false })
  const route = defineRoute({ method: 'GET', path: '/api/v1/broken', summary: 'broken', data: Type.Unknown() })
  http.mount([route, () => partedList([long('x', 20_000_000), 1n], 20_000_000), 'culprit'])
  await assert.rejects(http.send('GET', '/api/v1/broken'), { code: 'ECONNRESET' })
  assert.match(http.logs.join('\n'), /"pack":"culprit".*BigInt/)
})

test('an answer with more values than a server should make at once is refused, and put down to its pack', async t => {
  const http = await startHttp(t)
  const route = defineRoute({ method: 'GET', path: '/api/v1/values', summary: 'values', data: Type.Unknown() })
  http.mount([route, () => new Array(5_000_001).fill(0), 'culprit'])
  const { status, json } = await http.send('GET', '/api/v1/values')
  assert.deepEqual([status, json.code], [200, 50001])
  assert.match(http.logs.join('\n'), /"pack":"culprit".*more than 5000000 values: answer page by page/)
})
