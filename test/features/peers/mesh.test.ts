/** Servers of one home as one of them sees the others: who comes, who goes, and what they say to each other. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import events from 'node:fs'
import fs from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { dialChannel, homeSecret } from '../../../features/peers/handshake.ts'
import { Mesh } from '../../../features/peers/mesh.ts'
import { ownerHook } from '../../../features/peers/owner.ts'
import type { PeerTopic } from '../../../features/peers/service.ts'
import type { Relays, SharedEvent } from '../../../kernel/index.ts'
import { testEnvironment } from '../../../kernel/testing.ts'
import { mockedBuiltins } from '../../helpers/builtins.ts'
import { freshDir } from '../../helpers/temp.ts'

const timeout = 20_000
const { log } = testEnvironment()
const [older, younger] = ['01ARZ3NDEKTSV4RRFFQ69G5FA1', '01ARZ3NDEKTSV4RRFFQ69G5FA2']

/** What a server heard, one line each, and whoever waits for a line. */
class Heard {
  readonly lines: string[] = []
  #waiting: (() => void)[] = []

  add(line: string): void {
    this.lines.push(line)
    for (const wake of this.#waiting.splice(0)) wake()
  }

  async until(line: string): Promise<void> {
    while (!this.lines.includes(line)) await new Promise<void>(resolve => this.#waiting.push(resolve))
  }
}

function server(t: TestContext, home: string, server_id: string) {
  const heard = new Heard()
  let share: ((event: SharedEvent) => void) | undefined
  const relays: Relays = {
    serve: (req, res, { remote_address }) => void res.end(`${server_id} ${req.method} ${req.url} ${remote_address}`),
    connect: client => ({
      receive: async data => void client.message(Buffer.from(`${server_id} heard ${data}`), false),
      close: () => heard.add('client gone')
    }),
    setElsewhere: elsewhere => heard.add(elsewhere ? 'remote' : 'no remote'),
    onShared: listener => {
      share = listener
      return () => {
        share = undefined
        heard.add('shares nothing')
      }
    },
    deliver: event => heard.add(`event ${event.type} ${event.frame}`)
  }
  const topic: PeerTopic = {
    topic: 'things',
    present: others => heard.add(`present ${others}`),
    joined: id => heard.add(`joined ${id}`),
    left: (id, gone) => heard.add(`left ${id} ${gone}`),
    told: (payload, from) => heard.add(`told ${payload} by ${from}`),
    asked: (payload, from) => `${payload} asked by ${from}`
  }
  const failing: PeerTopic = {
    topic: 'broken',
    joined: () => assert.fail('a topic that fails'),
    told: () => assert.fail('as above')
  }
  const mesh = new Mesh({ home, server_id, log, relays, topics: () => [failing, topic], owner: ownerHook() })
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= mesh.close()
    return closed
  }
  t.after(close)
  return { mesh, heard, close, isSharing: () => share !== undefined, share: (event: SharedEvent) => share?.(event) }
}

const tooMany = () => {
  throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' })
}

/** Sockets and timers of servers keep no process. */
function keepAlive(t: TestContext): void {
  const alive = setInterval(() => undefined, 1000)
  t.after(() => clearInterval(alive))
}

async function two(t: TestContext) {
  keepAlive(t)
  const home = await freshDir()
  const [first, second] = [server(t, home, older), server(t, home, younger)]
  await first.mesh.open()
  await second.mesh.open()
  await Promise.all([first.heard.until(`joined ${younger}`), second.heard.until(`joined ${older}`)])
  return { home, first, second }
}

test('servers hear of each other when both are there, and when one has ended', { timeout }, async t => {
  const { first, second } = await two(t)
  assert.deepEqual([first.mesh.servers(), second.mesh.servers()], [[younger], [older]])
  assert.deepEqual([first.mesh.links().length, first.mesh.silent(younger), first.mesh.silent('nobody')], [1, false, true])
  assert.deepEqual(first.heard.lines, ['remote', 'present true', `joined ${younger}`])
  assert.ok(first.isSharing())

  await second.close()
  await first.heard.until('present false')
  assert.deepEqual(first.heard.lines.slice(3), [`left ${younger} true`, 'shares nothing', 'present false'])
  assert.deepEqual([first.mesh.servers(), first.mesh.place(younger), first.isSharing()], [[], undefined, false])
  assert.ok(second.heard.lines.includes('no remote'))
})

test('a server stays known while the directory or its entry cannot be read', { timeout }, async t => {
  const { home, first } = await two(t)
  const refused = t.mock.method(fs, 'readdir', tooMany)
  const restore = mockedBuiltins(t)
  await first.mesh.look()
  assert.ok(refused.mock.callCount() > 0)
  restore()
  const entry = join(home, 'server', 'peers', `${younger}.json`)
  await fs.symlink(entry, `${entry}~`)
  await fs.rename(`${entry}~`, entry) // at once: no reader of it gets anywhere
  await first.mesh.look()
  assert.deepEqual(first.heard.lines, ['remote', 'present true', `joined ${younger}`])
  assert.deepEqual(first.mesh.servers(), [younger])
})

test('a server that could not read who is there looks again', { timeout }, async t => {
  keepAlive(t)
  const home = await freshDir()
  const [first, second] = [server(t, home, older), server(t, home, younger)]
  await first.mesh.open()
  t.mock.method(events, 'watch', tooMany)
  t.mock.method(fs, 'readdir', tooMany)
  const restore = mockedBuiltins(t)
  await second.mesh.open()
  restore()
  assert.deepEqual(second.mesh.servers(), [])
  await second.heard.until(`joined ${older}`)
})

test('a server that comes again is another one, and is linked as the first was', { timeout }, async t => {
  const home = await freshDir()
  const first = server(t, home, older)
  await first.mesh.open()
  const ids = [younger, '01ARZ3NDEKTSV4RRFFQ69G5FA3', '01ARZ3NDEKTSV4RRFFQ69G5FA0']
  for (const id of ids) {
    const other = server(t, home, id)
    await other.mesh.open()
    await Promise.all([first.heard.until(`joined ${id}`), other.heard.until(`joined ${older}`)])
    await other.close()
    await first.heard.until(`left ${id} true`)
  }
  assert.equal(first.heard.lines.filter(line => line.startsWith('joined')).length, ids.length)
})

test('a server that is closed lets go of those that passed requests on to it', { timeout }, async t => {
  keepAlive(t)
  const home = await freshDir()
  const first = server(t, home, older)
  await first.mesh.open()
  const { port } = JSON.parse(await fs.readFile(join(home, 'server', 'peers', `${older}.json`), 'utf8')) as { port: number }
  const socket = await dialChannel(port, await homeSecret(join(home, 'server')), { purpose: 'http', id: older })
  t.after(() => socket.destroy())
  socket.write('GET /x HTTP/1.1\r\nx-relayed-asker: {"remote_address":"10.1.2.3"}\r\n\r\n')
  socket.resume()
  await once(socket, 'data')

  await first.close()
  await once(socket, 'close')
})

test('the break of a link is told before the next one, however soon that comes', { timeout }, async t => {
  keepAlive(t)
  const home = await freshDir()
  const first = server(t, home, older)
  await first.mesh.open()
  // Another one, which dials, and many more, so that a look at all of them takes longer than a link.
  const dir = join(home, 'server', 'peers')
  const entry = JSON.parse(await fs.readFile(join(dir, `${older}.json`), 'utf8')) as { port: number }
  const many = Array.from({ length: 200 }, (_, n) => `01ARZ3NDEKTSV4RRFFQ69G6${String(n).padStart(3, '0')}`)
  for (const server_id of [younger, ...many]) await fs.writeFile(join(dir, `${server_id}.json`), JSON.stringify({ ...entry, server_id }))
  await first.mesh.look()
  const secret = await homeSecret(join(home, 'server'))
  const dial = () => dialChannel(entry.port, secret, { purpose: `link ${younger}`, id: older })
  const broken = await dial()
  await first.heard.until(`joined ${younger}`)
  broken.destroy()
  const again = await dial()
  t.after(() => again.destroy())
  const joined = () => first.heard.lines.filter(line => line === `joined ${younger}`).length
  while (joined() < 2) await new Promise(setImmediate)
  await first.mesh.look()
  await new Promise(setImmediate)

  const lines = first.heard.lines.filter(line => line.includes(younger))
  assert.deepEqual(lines, [`joined ${younger}`, `left ${younger} false`, `joined ${younger}`])
})

test('packs tell and ask themselves at the other server, and events that reach everyone go there', { timeout }, async t => {
  const { first, second } = await two(t)
  first.mesh.link(younger)?.tell('broken', 0)
  first.mesh.link(younger)?.tell('things', 1)
  first.mesh.link(younger)?.tell('nothing', 2)
  second.share({ scope: 'global', type: 'made', session_id: '', seq: 1, durable: true, frame: Buffer.from('{"a":\n1}') })
  await second.heard.until(`told 1 by ${older}`)
  await first.heard.until('event made {"a":\n1}')
  assert.equal(await first.mesh.link(younger)?.ask('things', 'x'), `x asked by ${older}`)
  await assert.rejects(async () => await first.mesh.link(younger)?.ask('nothing', 'x'), { message: "nobody answers 'nothing' here" })
})

test('requests and clients find their way to the other server and back', { timeout }, async t => {
  const { first, second } = await two(t)
  const place = first.mesh.place(younger)!
  const asker = { principal: { id: 'p' } as never, remote_address: '10.1.2.3' }
  const request = { id: 'r', method: 'GET', url: '/x', headers: {}, ...asker } as never
  const reply = await place.relay(request, undefined, new AbortController().signal)
  assert.equal(await text(reply.body), `${younger} GET /x 10.1.2.3`)
  const client = new Heard()
  const end = await place.connect({
    ...asker,
    user_agent: null,
    message: data => client.add(data.toString()),
    closed: code => client.add(`closed ${code}`)
  })
  end.send(Buffer.from('hello'), false)
  await client.until(`${younger} heard hello`)
  end.close()
  await second.heard.until('client gone')
})
