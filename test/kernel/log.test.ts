import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import { createLog, createOperator, type OperatorLine } from '../../kernel/log/log.ts'
import { mockedBuiltins } from '../helpers/builtins.ts'
import { tempHome } from './http-fixture.ts'

function captured() {
  const lines: string[] = []
  const log = createLog({ level: 'trace', to: { write: line => lines.push(line) } }, '/nowhere')
  return { log, lines, last: () => JSON.parse(lines.at(-1)!) }
}

const messages = async (file: string) =>
  (await readFile(file, 'utf8'))
    .trim()
    .split('\n')
    .map(line => JSON.parse(line).msg as string)

test('secrets are redacted by key at any depth', () => {
  const { log, lines, last } = captured()
  log.info({
    token: 'aaa-1',
    deep: { er: [{ api_key: 'aaa-2', apiKey: 'aaa-3', headers: { Authorization: 'aaa-4', 'x-api-key': 'aaa-5', cookie: ['aaa-6'] } }] },
    client_secret: 'aaa-7 "quoted" \\ tail',
    access_token: 'aaa-8',
    password: 'aaa-9',
    page_tokens: 12,
    max_tokens: 34,
    input: 'kept'
  })
  assert.ok(!lines[0]!.includes('aaa-'), lines[0])
  const line = last()
  assert.deepEqual([line.page_tokens, line.max_tokens, line.input, line.token], [12, 34, 'kept', '[redacted]'])
})

test('secrets are redacted by shape inside texts, messages and errors', () => {
  const { log, lines, last } = captured()
  const texts = [
    'header was Bearer abcdef123456',
    'key sk-proj_abcdef123456 refused',
    'http://localhost/#token=abcdef123456',
    'GET /x?api_key=abcdef123456&y=1',
    'svc-code.bearer.abcdef123456',
    'body {"api_key":"abcdef123456","n":1}',
    'body {"password":"quoted \\" abcdef123456 \\\\","n":1} end',
    'jwt eyJhbGciOiJIUzI1.abcdef123456.abcdef123456'
  ]
  for (const text of texts) {
    log.warn({ err: new Error(text, { cause: new Error(text) }), text }, text)
    assert.ok(!lines.at(-1)!.includes('abcdef123456'), lines.at(-1))
    assert.equal(last().level, 40)
  }
})

test('redaction keeps every line valid JSON and hides strings under secret keys', () => {
  const { log, lines } = captured()
  const secret = fc.string({ maxLength: 40 }).map(tail => `SECRET${tail}`)
  const key = fc.constantFrom('token', 'x-api-key', 'Password', 'client_secret')
  fc.assert(
    fc.property(fc.jsonValue(), key, secret, (value, name, text) => {
      const nested = JSON.stringify({ [name]: text, value })
      log.info({ value, deep: { [name]: text, nested } }, nested)
      const line = lines.at(-1)!
      JSON.parse(line)
      assert.ok(!line.includes('SECRET'), line)
    }),
    { numRuns: 300 }
  )
})

test('a very long line is cut, and stays one line of JSON', () => {
  const { log, lines, last } = captured()
  log.error({ text: '\\"x'.repeat(1_000_000), token: 'hush' }, 'long')
  assert.equal(lines.length, 1)
  assert.ok(lines[0]!.length < 20_000)
  assert.deepEqual([last().level, /was cut/.test(last().msg)], [50, true])
})

test('a child carries its pack and redacts too', () => {
  const { log, last } = captured()
  log.child({ pack: 'llm' }).info({ secret: 'x-1' }, 'hello')
  assert.deepEqual([last().pack, last().secret, last().msg], ['llm', '[redacted]', 'hello'])
})

test('a silent log opens no file', async () => {
  const home = await tempHome()
  createLog({ level: 'silent' }, join(home, 'logs', 'svc-code.log')).error('nothing')
  assert.deepEqual(await readdir(home), [])
})

test('the file lies under the home, is private, and rotates by size', async () => {
  const home = await tempHome()
  const log = createLog({ maxBytes: 2_000, keep: 2 }, join(home, 'logs', 'svc-code.log'))
  for (let n = 0; n < 100; n++) log.info({ n }, 'a line of some length')
  log.debug('not at this level')
  const dir = join(home, 'logs')
  assert.deepEqual((await readdir(dir)).sort(), ['svc-code.log', 'svc-code.log.1', 'svc-code.log.2'])
  assert.equal((await stat(join(dir, 'svc-code.log'))).mode & 0o777, 0o600)
  const numbers = async (name: string) =>
    (await readFile(join(dir, name), 'utf8'))
      .trim()
      .split('\n')
      .map(line => JSON.parse(line).n as number)
  const all = [...(await numbers('svc-code.log.2')), ...(await numbers('svc-code.log.1')), ...(await numbers('svc-code.log'))]
  assert.equal(all.at(-1), 99)
  assert.deepEqual(
    all,
    all.map((_, index) => all[0]! + index)
  )
})

test('two writers of one file survive the rotation', async () => {
  const home = await tempHome()
  const one = createLog({ maxBytes: 1_000, keep: 9 }, join(home, 'logs', 'svc-code.log'))
  const two = createLog({ maxBytes: 1_000, keep: 9 }, join(home, 'logs', 'svc-code.log'))
  for (let n = 0; n < 20; n++) {
    one.info({ n }, 'one')
    two.info({ n }, 'two')
  }
  const dir = join(home, 'logs')
  const texts = await Promise.all((await readdir(dir)).map(name => readFile(join(dir, name), 'utf8')))
  assert.equal(texts.join('').trim().split('\n').length, 40)
})

test('a log file that is moved or deleted is made anew with the next line', async () => {
  const home = await tempHome()
  const file = join(home, 'logs', 'svc-code.log')
  const log = createLog({}, file)
  log.info('first')
  await rename(file, `${file}-moved`)
  log.info('second')
  assert.deepEqual(await Promise.all([`${file}-moved`, file].map(messages)), [['first'], ['second']])

  await rm(join(home, 'logs'), { recursive: true })
  log.info('third')

  assert.deepEqual(await messages(file), ['third'])
})

test('a line that a full disk cut damages no other line', async t => {
  const file = join(await tempHome(), 'logs', 'svc-code.log')
  const log = createLog({}, file)
  const write = fs.writeSync
  t.mock.method(fs, 'writeSync', ((fd: number, bytes: Buffer) => write(fd, bytes.subarray(0, 9))) as typeof fs.writeSync)
  const restore = mockedBuiltins(t)
  log.info('cut')
  restore()

  log.info('whole')

  const lines = (await readFile(file, 'utf8')).trim().split('\n')
  assert.deepEqual([lines.length, lines[0]?.length, JSON.parse(lines[1] ?? '').msg], [2, 9, 'whole'])
})

test('the last line is in the file after process.exit and after a crash', async () => {
  const home = await tempHome()
  const module = JSON.stringify(pathToFileURL(join(import.meta.dirname, '../../kernel/log/log.js')).href)
  const run = (end: string) => {
    const code = `const { createLog } = await import(${module}); const log = createLog({}, ${JSON.stringify(join(home, 'logs', 'svc-code.log'))}); log.info('before ${end}'); ${end}`
    spawnSync(process.execPath, ['--input-type=module', '-e', code])
  }
  run('process.exit(3)')
  run('queueMicrotask(() => { throw new Error(1) })')
  const text = await readFile(join(home, 'logs', 'svc-code.log'), 'utf8')
  assert.match(text, /before process\.exit[\s\S]*before queueMicrotask/)
})

test('of two servers that write to one file the first that finds it full rotates it, and the other one goes on in the new file', async () => {
  const home = await tempHome()
  const [one, two] = [
    createLog({ maxBytes: 1000, keep: 5 }, join(home, 'logs', 'svc-code.log')),
    createLog({ maxBytes: 1000, keep: 5 }, join(home, 'logs', 'svc-code.log'))
  ]
  const text = 'x'.repeat(500)
  for (const log of [one, two, one, two, one, two]) log.info(text)
  const dir = join(home, 'logs')
  const names = (await readdir(dir)).sort()
  assert.deepEqual(names, ['svc-code.log', 'svc-code.log.1', 'svc-code.log.2'])
  const lines = await Promise.all(names.map(async name => (await messages(join(dir, name))).length))
  assert.deepEqual(lines, [2, 2, 2])
  assert.equal((await stat(dir)).mode & 0o777, 0o700)
})

test('a line for whoever runs the server is one line without secrets and control characters; the log has its facts', () => {
  const { log, last } = captured()
  const shown: OperatorLine[] = []
  const operator = createOperator(log, line => {
    shown.push(line)
    throw new Error('the terminal is gone')
  })

  operator.warn({ session_id: 's1' }, 'it said:\n\u001b[2J"Authorization: Bearer abcdefgh123"')
  assert.deepEqual([last().level, last().session_id], [40, 's1'])
  operator.info({}, 'x'.repeat(5_000))

  assert.deepEqual(shown[0], { level: 'warning', text: 'it said: [2J"Authorization: [redacted]"' })
  assert.deepEqual([shown[1]?.level, shown[1]?.text.length], ['info', 1_000])
})
