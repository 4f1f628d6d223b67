import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { Link, type LinkPorts } from '../../../features/peers/link.ts'
import { Unreached } from '../../../features/peers/owner.ts'
import { socketPair } from './socket-pair.ts'

const timeout = 20_000

const ports: LinkPorts = {
  shared: () => undefined,
  told: () => undefined,
  asked: async () => undefined,
  silent: () => undefined,
  closed: () => undefined
}

function message(value: unknown): Buffer {
  const body = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
  const head = Buffer.alloc(5)
  head.writeUInt32BE(body.length, 0)
  return Buffer.concat([head, body])
}

test('a link that is being closed says its last words, and takes none any more', { timeout }, async t => {
  const [there, here] = await socketPair(t)
  const told: unknown[] = []
  const link = new Link(here, { ...ports, told: (_topic, payload) => told.push(payload) })

  const lastWords = 'x'.repeat(8 * 1024 * 1024) // more than a socket takes while nobody reads
  link.tell('topic', lastWords)
  link.close()
  const arrived = once(here, 'data')
  there.write(message({ tell: 'topic', payload: 'late' }))
  await arrived
  assert.deepEqual(told, [])
  let bytes = 0
  there.on('data', data => {
    bytes += data.length
  })
  there.resume()
  await once(here, 'close')
  await once(there, 'end')
  assert.ok(bytes > lastWords.length)
})

async function linked(t: TestContext, asked: LinkPorts['asked']) {
  const [one, other] = await socketPair(t)
  return [new Link(one, ports), new Link(other, { ...ports, asked })] as const
}

test('a question is answered, with what the other side has to say against it, or not reached', { timeout }, async t => {
  let hang: (() => void) | undefined
  const [one, other] = await linked(t, async (topic, payload) => {
    if (topic === 'no') throw new Error('that is not to be had')
    if (topic === 'hang') await new Promise<void>(resolve => resolve(hang?.()))
    if (topic === 'hang') return await new Promise(() => undefined)
    return { topic, payload }
  })
  assert.deepEqual(await Promise.all([one.ask('a', 1), one.ask('b', [2])]), [
    { topic: 'a', payload: 1 },
    { topic: 'b', payload: [2] }
  ])
  await assert.rejects(one.ask('no', 1), { message: 'that is not to be had' })
  const asked = new Promise<void>(resolve => {
    hang = resolve
  })
  const open = one.ask('hang', 1)
  await asked
  other.close()
  await assert.rejects(open, Unreached)
  await assert.rejects(one.ask('a', 1), Unreached)
})

test('a server that misses three beats is silent until its next word, answers no question, and hears ours all the time', {
  timeout
}, async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const [there, here] = await socketPair(t)
  const told: boolean[] = []
  let heard: () => void = () => undefined
  const spoke = new Promise<void>(resolve => {
    heard = resolve
  })
  const link = new Link(here, {
    ...ports,
    silent: isSilent => {
      told.push(isSilent)
      if (!isSilent) heard()
    }
  })
  let beats = ''
  there.on('data', data => {
    beats += String(data)
  })
  there.resume()
  const asked = link.ask('a', 1)
  for (let beat = 0; beat < 5; beat++) {
    assert.equal(link.silent, beat >= 3)
    t.mock.timers.tick(1000)
  }
  assert.deepEqual(told, [true])
  for (const question of [asked, link.ask('a', 2)]) await assert.rejects(question, new Unreached(undefined, true))
  there.write(message({ beat: true }))
  await spoke
  assert.deepEqual([told, link.silent], [[true, false], false])
  t.mock.timers.tick(2000)
  assert.equal(link.silent, false)
  while (beats.split('beat').length < 8) await once(there, 'data')
})

test('who says what is no message is left', { timeout }, async t => {
  const [there, here] = await socketPair(t)
  const left = once(there.resume(), 'close')
  new Link(here, ports)
  there.write(message('no json'))
  await left
})

test('who takes nothing of a lot is left', { timeout }, async t => {
  const [there, here] = await socketPair(t)
  const link = new Link(here, ports)
  const much = 'x'.repeat(16 * 1024 * 1024)
  for (let n = 0; n < 4; n++) link.tell('topic', much)
  assert.equal(here.destroyed, false)
  for (let n = 0; n < 2; n++) link.tell('topic', much)
  assert.ok(here.destroyed)
  there.destroy()
})
