/** Media of messages: files beside the journal, references on record and in events, bytes for clients and the model. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { readdir, readFile, rm, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Media, MediaCache } from '../../../features/history/media.ts'
import type { LlmMessage } from '../../../features/llm/index.ts'
import { listMessages, readMedia } from '../../../features/messages/index.ts'
import { listPrompts, steerPrompts, submitPrompt } from '../../../features/prompts/index.ts'
import { readSnapshot } from '../../../features/session-views/index.ts'
import { SessionBusy } from '../../../features/sessions/index.ts'
import type { BlobStore } from '../../../kernel/index.ts'
import { latch } from '../../helpers/latch.ts'
import { memoryLog, openHistory } from '../../helpers/memory-history.ts'
import { type Reply, type ScriptedLlm, scriptedLlm, testModel, toolCalls } from '../../helpers/scripted-llm.ts'
import { copyOfHome, historyOnDisk, runner, type Started, startAgent, wireOf } from '../agent/start.ts'
import { silent } from '../tools/fakes.ts'

const png = (size: number) => Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), randomBytes(size - 8)])
const image = (bytes: Buffer) =>
  ({ type: 'image', source: { kind: 'base64', media_type: 'image/png', data: bytes.toString('base64') } }) as const
const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const reference = (bytes: Buffer) => ({
  type: 'image',
  source: { kind: 'session_media', file_id: digest(bytes), media_type: 'image/png' }
})

/** A model that takes images. */
function seeing(...replies: readonly Reply[]): ScriptedLlm {
  const scripted = scriptedLlm(...replies)
  Object.assign(scripted.llm, { resolve: () => ({ ...testModel, capabilities: ['image_in'] }) })
  return scripted
}

async function blobsIn({ home }: { readonly home: string }): Promise<string[]> {
  const files = await readdir(home, { recursive: true })
  return files.filter(name => /agents\/main\/blobs\/[0-9a-f]{64}$/.test(name)).map(name => join(home, name))
}

const submit = async (server: Started, ...content: readonly unknown[]) => {
  const reply = await server.call(submitPrompt, { params: { session_id: server.session_id }, body: { content: content as never } })
  assert.equal(reply.code, 0, reply.msg)
  return reply.data
}

const imagesOf = (messages: readonly LlmMessage[] = []) =>
  messages.flatMap(({ content }) => content.flatMap(part => (part.type === 'image' ? [part.data] : [])))

const told = (server: Started, type: string) =>
  server.events
    .filter(event => event.type === type)
    .map(event => event.payload as { readonly content?: unknown[]; readonly output?: unknown })

test('a large image of a prompt is a file, its record and events refer to it, clients and the model get its bytes', async t => {
  const llm = seeing('a cat')
  const server = await startAgent(t, llm)
  const bytes = png(100_000)

  const prompt = await submit(server, { type: 'text', text: 'what is it?' }, image(bytes))
  await server.settled(1)

  assert.deepEqual(prompt.content[1], image(bytes))
  const [file] = await blobsIn(server)
  assert.deepEqual(await readFile(file ?? ''), bytes)
  const accepted = (await wireOf(server)).find(record => record.type === 'prompt.accepted') as { content?: unknown[] } | undefined
  assert.deepEqual(accepted?.content?.[1], reference(bytes))
  assert.deepEqual(told(server, 'prompt.submitted')[0]?.content?.[1], reference(bytes))
  assert.deepEqual(imagesOf(llm.requests[0]?.messages), [bytes.toString('base64')])
  const params = { session_id: server.session_id }
  const { items } = (await server.call(listMessages, { params })).data
  assert.deepEqual(items.find(message => message.id === prompt.prompt_id)?.content[1], image(bytes))
  const snapshot = (await server.call(readSnapshot, { params })).data
  assert.deepEqual(snapshot.messages.items.find(message => message.id === prompt.prompt_id)?.content[1], image(bytes))
})

test('a file of a medium that lost its end is whole again when the medium is given again', async t => {
  const server = await startAgent(t, seeing('a cat'))
  const bytes = png(100_000)
  await submit(server, image(bytes))
  await server.settled(1)
  const [file = ''] = await blobsIn(server)
  await truncate(file, 50_000)
  await submit(server, image(bytes))
  await server.settled(2)
  assert.deepEqual(await readFile(file), bytes)
})

test('a large image that a tool answers is a file, too', async t => {
  const bytes = png(5_000)
  const output = [{ type: 'image', media_type: 'image/png', data: bytes.toString('base64') }] as const
  const tools = runner(async ({ calls, report }) => {
    const outcomes = calls.map(call => ({ call, result: { output } }))
    for (const call of calls) await report({ type: 'started', call, args: {} })
    return outcomes
  })
  const llm = seeing(toolCalls({ id: 'c1', name: 'Look' }), 'seen')
  const server = await startAgent(t, llm, { packs: [tools] })

  await server.prompt('look')
  await server.settled(1)

  assert.deepEqual(told(server, 'tool.result')[0]?.output, [reference(bytes)])
  assert.deepEqual(imagesOf(llm.requests[1]?.messages), [bytes.toString('base64')])
  const { items } = (await server.call(listMessages, { params: { session_id: server.session_id } })).data
  assert.deepEqual(items.find(message => message.role === 'tool')?.content, [
    { type: 'tool_result', tool_call_id: 'c1', output: [image(bytes)] }
  ])
})

test('small media, and base64 that would come back in other letters, stay in the record', async t => {
  const server = await startAgent(t, seeing('ok'))
  const small = image(png(4096))
  const data = png(6_000).toString('base64')
  const broken = { type: 'image', source: { kind: 'base64', media_type: 'image/png', data: `${data.slice(0, 76)}\n${data.slice(76)}` } }

  await submit(server, small, broken)
  await server.settled(1)

  assert.deepEqual(await blobsIn(server), [])
  const accepted = (await wireOf(server)).find(record => record.type === 'prompt.accepted')
  assert.deepEqual(accepted?.content, [small, broken])
})

test('the file is on disk before the record that refers to it, and the same image is stored once', async t => {
  const seen: number[] = []
  let count = async () => 0
  const history = historyOnDisk(async records => {
    if (records.some(record => record.type === 'prompt.accepted')) seen.push(await count())
  })
  const server = await startAgent(t, seeing('ok'), { history })
  count = async () => (await blobsIn(server)).length
  const bytes = png(10_000)

  await submit(server, image(bytes))
  await server.settled(1)
  await submit(server, image(bytes))
  await server.settled(2)

  assert.deepEqual(seen, [1, 1])
})

test('a text stands for a file that is gone, for clients and for the model, and the turn goes on', async t => {
  const llm = seeing('first', 'second')
  const first = await startAgent(t, llm)
  const bytes = png(9_000)
  const { prompt_id } = await submit(first, image(bytes))
  await first.settled(1)
  await first.stop()
  for (const file of await blobsIn(first)) await rm(file)

  const server = await startAgent(t, llm, { home: first.home, session_id: first.session_id })
  await server.prompt('go on')
  await server.settled(1)

  const gone = { type: 'text', text: '[image: its file is missing]' }
  assert.deepEqual(llm.requests[1]?.messages[0]?.content, [gone])
  const { items } = (await server.call(listMessages, { params: { session_id: server.session_id } })).data
  assert.deepEqual(items.find(message => message.id === prompt_id)?.content, [gone])
  assert.equal(llm.requests.length, 2)
})

test('a model that takes no images gets a notice, and no file is read for it', async t => {
  const llm = scriptedLlm('I cannot see')
  const server = await startAgent(t, llm)

  await submit(server, image(png(9_000)), image(png(10)))
  await server.settled(1)

  const [message] = llm.requests[0]?.messages ?? []
  const text = '[image: this model cannot see images]'
  assert.deepEqual(message?.content, [
    { type: 'text', text },
    { type: 'text', text }
  ])
})

test('what waits in the queue is shown whole, and a steered image reaches the model', async t => {
  const gate = latch()
  const llm = seeing(
    [
      { type: 'wait', until: gate.opened },
      { type: 'finish', reason: 'completed' }
    ],
    'seen'
  )
  const server = await startAgent(t, llm)
  const bytes = png(7_000)
  await server.prompt('begin')
  await llm.arrived(0)

  const { prompt_id } = await submit(server, image(bytes))

  const params = { session_id: server.session_id }
  assert.deepEqual((await server.call(listPrompts, { params })).data.queued[0]?.content, [image(bytes)])
  await server.call(steerPrompts, { params, body: { prompt_ids: [prompt_id] } })
  assert.deepEqual(told(server, 'prompt.steered')[0]?.content, [reference(bytes)])
  gate.open()
  await server.settled(1)
  assert.deepEqual(imagesOf(llm.requests[1]?.messages), [bytes.toString('base64')])
})

test('a medium of a message is read by the id that events tell, in ranges, and can be sent again by it', async t => {
  const llm = seeing('one', 'two')
  const server = await startAgent(t, llm)
  const bytes = png(8_000)
  await submit(server, image(bytes))
  await server.settled(1)
  const file_id = digest(bytes)
  const path = `/api/v1/sessions/${server.session_id}/media/${file_id}`

  const whole = await server.rest.raw('GET', path)
  assert.equal(whole.headers['content-type'], 'image/png')
  assert.equal(whole.headers.etag, `"${server.session_id}-${file_id}-8000"`)
  assert.deepEqual(whole.body, bytes)
  const range = await server.rest.raw('GET', path, { headers: { range: 'bytes=0-7' } })
  assert.equal(range.status, 206)
  assert.deepEqual(range.body, bytes.subarray(0, 8))

  await submit(server, { type: 'image', source: { kind: 'session_media', file_id } })
  await server.settled(2)
  assert.deepEqual(imagesOf(llm.requests[1]?.messages), [bytes.toString('base64'), bytes.toString('base64')])
  assert.equal((await blobsIn(server)).length, 1)
})

test('what a medium is its first bytes say, whatever the prompt called it', async t => {
  const server = await startAgent(t, seeing('one'))
  const begins = [
    ['GIF89a', 'image/gif'],
    ['\xff\xd8\xff\xe0', 'image/jpeg'],
    ['RIFF\0\0\0\0WEBP', 'image/webp'],
    ['RIFF\0\0\0\0WAVE', 'application/octet-stream'],
    ['\0\0\0\x20ftypisom', 'video/mp4'],
    ['\x1a\x45\xdf\xa3', 'video/webm'],
    ['<script>alert(1)</script>', 'application/octet-stream']
  ] as const
  const media = begins.map(([head]) => Buffer.concat([Buffer.from(head, 'latin1'), randomBytes(5_000)]))
  const source = (bytes: Buffer) => ({ kind: 'base64', media_type: 'text/html', data: bytes.toString('base64') })
  await submit(server, ...media.map(bytes => ({ type: 'image', source: source(bytes) })))
  await server.settled(1)

  const read = (bytes: Buffer) => server.rest.raw('GET', `/api/v1/sessions/${server.session_id}/media/${digest(bytes)}`)
  const types = (await Promise.all(media.map(read))).map(({ headers }) => headers['content-type'])
  assert.deepEqual(
    types,
    begins.map(([, type]) => type)
  )
})

test('a video of 20 MiB is shown to a model that takes videos, a larger one is named', async () => {
  const file_id = `f_${'0'.repeat(26)}`
  const part = { type: 'video', source: { kind: 'session_media', file_id } }
  const facts = { file_id, name: 'clip.mp4', media_type: 'video/mp4', file: import.meta.filename }
  const shown = async (size: number, videos: boolean) => {
    const media = new Media({} as BlobStore, new MediaCache(), silent, { find: async () => ({ ...facts, size }) })
    return (await media.forModel(part, { images: true, videos })).map(({ type, text }) => text ?? type)
  }
  const where = `the file is ${facts.file}]`
  assert.deepEqual(await shown(20 * 1024 * 1024, true), [`Video "clip.mp4": ${facts.file}`, 'video'])
  assert.deepEqual(await shown(20 * 1024 * 1024 + 1, true), [`[video "clip.mp4": this model cannot see videos above 20 MiB; ${where}`])
  assert.deepEqual(await shown(1, false), [`[video "clip.mp4": this model cannot see videos; ${where}`])
})

test('an unknown medium, and one of an unknown session, answer HTTP 404 with an envelope', async t => {
  const server = await startAgent(t, seeing('ok'))
  await server.prompt('hello')
  await server.settled(1)
  const read = (session_id: string, file_id: string) => server.call(readMedia, { params: { session_id, file_id } })
  for (const file_id of ['0'.repeat(64), 'wire.jsonl', '../main/wire.jsonl']) {
    const reply = await read(server.session_id, file_id)
    assert.deepEqual([reply.status, reply.code], [404, 40407])
  }
  const other = await read('session_x', '0'.repeat(64))
  assert.deepEqual([other.status, other.code], [404, 40401])
})

test('after a kill the events of a prompt with an image are not told again', async t => {
  const gate = latch()
  const llm = seeing([{ type: 'wait', until: gate.opened }])
  const server = await startAgent(t, llm)
  const bytes = png(20_000)
  await submit(server, image(bytes))
  await llm.arrived(0)
  await server.call(readSnapshot, { params: { session_id: server.session_id } }) // answers when all events are on disk

  const after = await startAgent(t, seeing('ok'), { home: await copyOfHome(server.home), session_id: server.session_id })
  await after.call(listMessages, { params: { session_id: after.session_id } })

  assert.deepEqual(told(after, 'prompt.submitted'), [])
  gate.open()
})

test('what was read is kept for the next request, within a bound', async () => {
  const cache = new MediaCache(10)
  const read: string[] = []
  const get = (id: string, length: number) =>
    cache.get(id, async () => {
      read.push(id)
      return 'x'.repeat(length)
    })
  await get('a', 4)
  await get('b', 4)
  await get('a', 4)
  await get('c', 4) // b was read least recently
  await get('a', 4)
  await get('b', 4)
  await get('large', 11)
  await get('b', 4)
  assert.deepEqual(read, ['a', 'b', 'c', 'b', 'large'])
})

test('a process that does not own the session stores nothing', async () => {
  const put: string[] = []
  const blobs = { stat: async () => undefined, put: async (id: string) => void put.push(id) } as unknown as BlobStore
  const history = await openHistory(memoryLog(), { writable: false, media: new Media(blobs, new MediaCache(), silent) })
  const refused = history.append({ type: 'message', role: 'user', content: [image(png(5_000))] })
  await assert.rejects(refused, { spec: SessionBusy })
  assert.deepEqual(put, [])
})

/** A history whose media get on disk when they are let. */
async function slowMedia() {
  const lands = latch<Error | undefined>()
  const log = memoryLog()
  const put = async () => {
    const refusal = await lands.opened
    if (refusal) throw refusal
  }
  const blobs = { stat: async () => undefined, put } as unknown as BlobStore
  const history = await openHistory(log, { media: new Media(blobs, new MediaCache(), silent) })
  const types = () => log.lines.map(line => (JSON.parse(line) as { type: string; note?: string }).note).filter(note => note !== undefined)
  return { history, lands, types }
}
const noted = (note: string, ...content: unknown[]) => ({ type: 'message', role: 'user', content, note }) as never
const text = { type: 'text', text: 'hello' } as const

test('what is written while media get on disk comes behind them, in the order of the calls', async () => {
  const { history, lands, types } = await slowMedia()

  const writes = [
    history.append(noted('image', image(png(5_000)))),
    history.append(noted('first', text)),
    history.append(noted('second', text))
  ]
  lands.open(undefined)
  const late = lands.opened.then(() => history.append(noted('late', text)))
  await Promise.all([...writes, late])

  assert.deepEqual(types(), ['image', 'first', 'second', 'late'])
})

test('media that the disk refuses fail alone: what was written behind them is on record', async () => {
  const { history, lands, types } = await slowMedia()

  const refused = history.append(noted('image', image(png(5_000))))
  const behind = history.append(noted('behind', text))
  lands.open(new Error('disk full'))

  await assert.rejects(refused, /disk full/)
  await behind
  assert.deepEqual(types(), ['behind'])
})

test('the context and the end of the process wait for what is written behind media', async () => {
  const { history, lands, types } = await slowMedia()

  void history.append(noted('image', image(png(5_000))))
  void history.append(noted('behind', text))
  const context = history.project()
  const closed = history.close()
  lands.open(undefined)

  assert.equal((await context)[0]?.content.length, 2) // consecutive messages of the user are one
  await closed
  assert.deepEqual(types(), ['image', 'behind'])
})
