/** A client of one server at another one: what goes over the socket between them, and what waits. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { clientOver, takeClient } from '../../../features/peers/clients.ts'
import type { RelayedClient, Relays } from '../../../kernel/index.ts'
import { socketPair } from './socket-pair.ts'

const timeout = 20_000
const turn = () => new Promise<void>(resolve => setImmediate(resolve))

/** Both ends. `message` and `receive` say how long each side takes. */
async function scene(t: TestContext, take: { message?: (text: string) => unknown; receive?: (text: string) => Promise<void> } = {}) {
  const [here, there] = await socketPair(t)
  const log: string[] = []
  let over: () => void = () => undefined
  const ended = new Promise<void>(resolve => {
    over = resolve
  })
  const client: RelayedClient = {
    principal: { id: 'p', scopes: ['api'] } as never,
    remote_address: '10.1.2.3',
    user_agent: 'browser',
    message: (data, binary) => {
      log.push(`${binary ? 'bytes' : 'text'} ${data.length < 100 ? data.toString() : data.length}`)
      return take.message?.(data.toString('latin1', 0, 20))
    },
    closed: (code, reason) => {
      log.push(`closed ${code} ${reason}`)
      over()
    }
  }
  const asked: string[] = []
  let left: () => void = () => undefined
  const gone = new Promise<void>(resolve => {
    left = resolve
  })
  const connected = new Promise<RelayedClient>(resolve => {
    const connect: Relays['connect'] = asker => {
      resolve(asker)
      return {
        receive: async (data, binary) => {
          asked.push(`${binary ? 'bytes' : 'text'} ${data.toString('latin1', 0, 20)}`)
          await take.receive?.(data.toString('latin1', 0, 20))
        },
        close: () => left()
      }
    }
    takeClient(there, { connect } as Relays)
  })
  const end = clientOver(here, client)
  return { end, owner: await connected, log, asked, ended, gone, here, there }
}

test('the other server hears who asks, and takes messages of both kinds as they came', { timeout }, async t => {
  const { end, owner, log, asked, ended } = await scene(t)
  assert.deepEqual([owner.principal, owner.remote_address, owner.user_agent], [{ id: 'p', scopes: ['api'] }, '10.1.2.3', 'browser'])
  end.send(Buffer.from('one'), false)
  end.send(Buffer.from('two'), true)
  while (asked.length < 2) await turn()
  assert.deepEqual(asked, ['text one', 'bytes two'])
  owner.message(Buffer.from('three'), false)
  owner.message(Buffer.from('four'), true)
  owner.closed(1013, 'slow reader')
  await ended
  assert.deepEqual(log, ['text three', 'bytes four', 'closed 1013 slow reader'])
})

test('a client that goes takes its connection at the other server with it', { timeout }, async t => {
  const { end, gone } = await scene(t)
  end.close()
  await gone
})

test('a server that is cut off ends the connection of the client without a word', { timeout }, async t => {
  const { there, log, ended } = await scene(t)
  there.destroy()
  await ended
  assert.deepEqual(log, ['closed 1006 '])
})

test('a client that takes its time gets the rest later, all of it and in order, and the end behind it', { timeout }, async t => {
  let go: () => void = () => undefined
  const slow = new Promise<void>(resolve => {
    go = resolve
  })
  const { owner, log, ended, here } = await scene(t, { message: text => (text === 'first' ? slow : undefined) })
  owner.message(Buffer.from('first'), false)
  while (log.length === 0) await turn()
  assert.ok(here.isPaused())
  owner.message(Buffer.from('second'), false)
  owner.closed(1000, '')
  for (let turns = 0; turns < 20; turns++) await turn()
  assert.deepEqual(log, ['text first'])
  go()
  await ended
  assert.deepEqual(log, ['text first', 'text second', 'closed 1000 '])
})

test('the server of a session waits while the way to the client is full, and goes on when it is not, or is gone', { timeout }, async t => {
  for (const open of [true, false]) {
    const { owner, here, there } = await scene(t)
    here.pause()
    const full: Promise<void>[] = []
    while (full.length === 0) {
      const waits = owner.message(Buffer.alloc(1024 * 1024), false) as Promise<void> | undefined
      if (waits) full.push(waits)
      else await turn()
    }
    assert.ok(there.writableLength > 0)
    if (open) here.resume()
    else there.destroy()
    await full[0]
  }
})

test('messages of a client wait for the one before, and the socket for them', { timeout }, async t => {
  let go: () => void = () => undefined
  const slow = new Promise<void>(resolve => {
    go = resolve
  })
  const { end, asked, there } = await scene(t, { receive: text => (text === 'first' ? slow : Promise.resolve()) })
  for (const text of ['first', 'second']) end.send(Buffer.from(text), false)
  while (asked.length === 0) await turn()
  for (let turns = 0; turns < 20; turns++) await turn()
  assert.deepEqual([asked, there.isPaused()], [['text first'], true])
  go()
  while (asked.length < 2) await turn()
  end.send(Buffer.from('third'), false)
  while (asked.length < 3) await turn()
})

test('a message that cannot be taken ends the connection on both sides', { timeout }, async t => {
  const { end, gone, ended } = await scene(t, { receive: () => Promise.reject(new Error('no')) })
  end.send(Buffer.from('x'), false)
  await Promise.all([gone, ended])
})

test('a server that stops takes no client', { timeout }, async t => {
  const [here, there] = await socketPair(t)
  const connect = () => {
    throw new Error('stopping')
  }
  takeClient(there, { connect } as unknown as Relays)
  clientOver(here, { principal: {} as never, remote_address: null, user_agent: null, message: () => undefined, closed: () => undefined })
  await once(here, 'close')
})
