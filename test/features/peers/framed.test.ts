/** Messages of the sockets between servers, whatever pieces they come in. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { FramedSocket } from '../../../features/peers/framed.ts'
import { socketPair } from './socket-pair.ts'

const timeout = 20_000

test('messages come as they were sent, whole, in pieces and several at once', { timeout }, async t => {
  const [one, other] = await socketPair(t)
  const parts: Buffer[] = []
  one.on('data', data => parts.push(data as Buffer))
  const sender = new FramedSocket(other, { limit: 100, take: () => undefined })
  const sent = [['a'.repeat(100), 7] as const, ['', 0] as const, ['end', 255] as const]
  for (const [text, kind] of sent) sender.send(kind, text)
  one.resume()
  while (Buffer.concat(parts).length < 3 * 5 + 103) await once(one, 'data')
  const bytes = Buffer.concat(parts)
  for (const size of [1, 3, bytes.length]) {
    const [from, to] = await socketPair(t)
    const got: (readonly [string, number])[] = []
    let done: () => void = () => undefined
    const all = new Promise<void>(resolve => {
      done = resolve
    })
    new FramedSocket(to, {
      limit: 100,
      take: (kind, body) => {
        got.push([body.toString(), kind])
        if (got.length === sent.length) done()
      }
    })
    from.setNoDelay(true)
    for (let at = 0; at < bytes.length; at += size) {
      from.write(bytes.subarray(at, at + size))
      await new Promise(resolve => setImmediate(resolve))
    }
    await all
    assert.deepEqual(got, sent)
  }
})

test('a message above the limit ends the socket, and what comes behind an end is for nobody', { timeout }, async t => {
  const [from, to] = await socketPair(t)
  const got: number[] = []
  let over: () => void = () => undefined
  const closed = new Promise<void>(resolve => {
    over = resolve
  })
  const framed = new FramedSocket(to, { limit: 10, take: kind => got.push(kind), closed: () => over() })
  assert.ok(framed.open)
  from.write(Buffer.from([0, 0, 0, 1, 1, 65, 0, 0, 0, 11, 2]))
  await closed
  assert.deepEqual([got, framed.open, framed.send(0, 'late')], [[1], false, false])

  const [one, other] = await socketPair(t)
  const taken: number[] = []
  const end: FramedSocket = new FramedSocket(other, {
    limit: 10,
    take: kind => {
      taken.push(kind)
      end.socket.destroy()
    }
  })
  one.write(Buffer.from([0, 0, 0, 0, 1, 0, 0, 0, 0, 2]))
  await once(other, 'close')
  assert.deepEqual(taken, [1])
})

test('who takes a socket that is over hears that it is', { timeout }, async t => {
  const [, socket] = await socketPair(t)
  socket.destroy()
  await once(socket, 'close')
  await new Promise<void>(resolve => void new FramedSocket(socket, { limit: 1, take: () => undefined, closed: resolve }))
})
