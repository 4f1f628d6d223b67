/** Calls between a pack's process and the server that never leave, or fail: nothing of them stays. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { type Message, Peer } from '../../../../features/cli/isolation/peer.ts'

/** The server's end and that of a process with this root; messages arrive in a moment. */
function ends(root: object) {
  const to = (other: () => Peer) => ({ send: (message: Message) => void setImmediate(() => other().receive(structuredClone(message), [])) })
  const server: Peer = new Peer({ wire: to(() => child), root: {}, server: true, failed: () => undefined })
  const child: Peer = new Peer({ wire: to(() => server), root, server: false, failed: () => undefined })
  return { server, child }
}

const listeners = ({ signal }: AbortController) => getEventListeners(signal, 'abort').length

test('a call that cannot be sent leaves nothing at the signals that went with it', async () => {
  const send = () => {
    throw new Error('too long')
  }
  const peer = new Peer({ wire: { send, ask: send }, root: {}, server: true, failed: () => undefined })
  const [sent, written, told, asked] = [new AbortController(), new AbortController(), new AbortController(), new AbortController()]

  await assert.rejects(peer.call(0, 'work', [sent.signal]), /too long/)
  await assert.rejects(peer.call(0, 'work', [written.signal, Symbol('no data')]), /means nothing/)
  assert.throws(() => peer.tell(0, 'work', [told.signal]), /too long/)
  assert.throws(() => peer.ask(0, { method: 'work' }, [asked.signal]), /too long/)

  assert.deepEqual([sent, written, told, asked].map(listeners), [0, 0, 0, 0])
})

test('a list that cannot be had leaves nothing at the signals that went with its call', async () => {
  const { server, child } = ends({ given: async () => ({ list: async function* () {} }) })
  const { list } = (await server.call(0, 'given', [])) as { list(signal: AbortSignal): AsyncIterable<unknown> }
  const turn = new AbortController()
  child.receive({ d: [[1, 1]] }, []) // let go of, as a process does that made it anew

  await assert.rejects(list(turn.signal)[Symbol.asyncIterator]().next(), /not there any more/)

  assert.equal(listeners(turn), 0)
})

test('an object crosses also when one like it went with what cannot cross, in a call or in an error', async () => {
  class Box {
    close() {}
  }
  class Crate extends Box {
    open() {}
  }
  const fail = () => {
    throw Object.assign(new Error('no'), { about: { crate: new Crate(), sign: Symbol('s') } })
  }
  const { server, child } = ends({ take: () => 'taken' })
  server.root = { fail }

  await assert.rejects(server.call(0, 'take', [new Box(), Symbol('s')]), /means nothing/)
  await assert.rejects(child.call(0, 'fail', []), /no/)

  for (const box of [new Crate(), new Box()]) assert.equal(await server.call(0, 'take', [box]), 'taken')
})
