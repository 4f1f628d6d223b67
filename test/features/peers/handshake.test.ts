/** Sockets between the servers of a home: who is let in, and who is believed. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { dialChannel, homeSecret, listenToChannels, NoAnswer } from '../../../features/peers/handshake.ts'
import { freshDir } from '../../helpers/temp.ts'

const name = { purpose: 'talk', id: 'listener' }
const turn = () => new Promise(resolve => setImmediate(resolve))

async function listening(t: TestContext) {
  const dir = await freshDir()
  const secret = await homeSecret(dir)
  const taken: { purpose: string; socket: Socket }[] = []
  const { server, port } = await listenToChannels(secret, name.id, (socket, purpose) => {
    taken.push({ purpose, socket })
    socket.end('welcome')
  })
  t.after(() => {
    for (const { socket } of taken) socket.destroy()
    server.close()
  })
  return { dir, secret, port, taken }
}

/** Sends texts to a port and answers with what came back, once the other side has hung up. */
async function said(port: number, ...texts: string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.on('error', () => undefined)
  socket.on('data', data => {
    answer += String(data)
  })
  for (const text of texts) socket.write(text)
  await once(socket, 'close')
  return answer
}

test('who has the secret of the home is let in, for what it says that it wants', async t => {
  const { dir, secret, port, taken } = await listening(t)
  assert.equal(await homeSecret(dir), secret)
  assert.equal((await stat(join(dir, 'channel.secret'))).mode & 0o777, 0o600)
  const socket = await dialChannel(port, secret, name)
  const [data] = (await once(socket.resume(), 'data')) as [Buffer]
  assert.deepEqual([String(data), taken.map(each => each.purpose)], ['welcome', ['talk']])
})

test('whoever is welcome is let in, however many are there already', { timeout: 60_000 }, async t => {
  const secret = await homeSecret(await freshDir())
  const open: Socket[] = []
  const { server, port } = await listenToChannels(secret, name.id, socket => void open.push(socket))
  t.after(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  while (open.length < 2 * 4200) open.push(...(await Promise.all(Array.from({ length: 100 }, () => dialChannel(port, secret, name)))))
})

test('a stranger gets nothing: neither for what is no hello nor without the secret', async t => {
  const { secret, port, taken } = await listening(t)
  for (const text of [
    'not json\n',
    'x'.repeat(2000),
    '{"id":1}\n',
    `{"proof":"${'a'.repeat(64)}"}\n`,
    `{"filler":"${'x'.repeat(5000)}"}\n`
  ]) {
    assert.equal(await said(port, text), '')
  }
  await assert.rejects(dialChannel(port, 'f'.repeat(64), name))
  await assert.rejects(dialChannel(port, secret, { ...name, id: 'another' }))
  assert.equal(taken.length, 0)
})

test('who says nothing is hung up on', async t => {
  const { port } = await listening(t)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let over = false
  const silent = said(port).then(answer => {
    over = true
    return answer
  })
  for (let turns = 0; !over && turns < 10_000; turns++) {
    t.mock.timers.tick(100)
    await turn()
  }
  assert.ok(over)
  assert.equal(await silent, '')
})

test('it listens on its loopback address alone', async t => {
  const { port } = await listening(t)
  const [error] = (await once(connect(port, '127.0.0.2'), 'error')) as [Error]
  assert.ok(error)
})

test("the listener's own proof does not pass for a caller's", { timeout: 10_000 }, async t => {
  const { port, taken } = await listening(t)
  const victim = connect(port, '127.0.0.1')
  victim.on('error', () => undefined)
  victim.write('{"hello":"x","purpose":"talk"}\n')
  const [data] = (await once(victim, 'data')) as [Buffer]
  const { nonce } = JSON.parse(String(data)) as { nonce: string }
  const mirror = connect(port, '127.0.0.1')
  mirror.write(`${JSON.stringify({ hello: nonce, purpose: 'talk' })}\n`)
  const [mirrored] = (await once(mirror, 'data')) as [Buffer]
  mirror.destroy()
  const { proof } = JSON.parse(String(mirrored)) as { proof: string }
  let answer = ''
  victim.on('data', more => {
    answer += String(more)
    victim.destroy()
  })
  victim.write(`${JSON.stringify({ proof })}\n`)
  await once(victim, 'close')
  assert.deepEqual([answer, taken.length], ['', 0])
})

test('a listener that welcomes without a proof, or with a made up one, is not believed', async t => {
  const dir = await freshDir()
  await mkdir(dir, { recursive: true })
  const secret = await homeSecret(dir)
  for (const lines of ['{"welcome":true}\n', '{"nonce":"n","proof":"p"}\n{"welcome":true}\n']) {
    const stranger = createServer(socket => {
      socket.on('error', () => undefined)
      socket.write(lines)
    }).listen(0, '127.0.0.1')
    await once(stranger, 'listening')
    t.after(() => stranger.close())
    const { port } = stranger.address() as { port: number }
    await assert.rejects(dialChannel(port, secret, name))
  }
})

/** A port between a caller and the listener that keeps what each side said; `change` may say it otherwise. */
async function between(t: TestContext, port: number, change = (line: string) => line) {
  const said: { readonly caller: string[]; readonly listener: string[] } = { caller: [], listener: [] }
  const server = createServer(near => {
    const far = connect(port, '127.0.0.1')
    const pass = (from: Socket, to: Socket, kept: string[]) => {
      from.on('error', () => undefined)
      from.on('close', () => to.destroy())
      from.on('data', data => {
        const text = change(String(data))
        kept.push(text)
        to.write(text)
      })
    }
    pass(near, far, said.caller)
    pass(far, near, said.listener)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return { port: (server.address() as { port: number }).port, said }
}

test('what was said once opens nothing later: neither what a caller said nor what the listener did', { timeout: 20_000 }, async t => {
  const { secret, port, taken } = await listening(t)
  const { port: open, said } = await between(t, port)
  const socket = await dialChannel(open, secret, name)
  socket.destroy()
  assert.equal(taken.length, 1)

  const again = connect(port, '127.0.0.1')
  again.on('error', () => undefined)
  again.write(said.caller[0]!)
  await once(again, 'data')
  again.write(said.caller[1]!)
  await once(again.resume(), 'close')
  assert.equal(taken.length, 1)

  const stranger = createServer(near => {
    near.on('error', () => undefined)
    near.write(said.listener.join(''))
  }).listen(0, '127.0.0.1')
  await once(stranger, 'listening')
  t.after(() => stranger.close())
  await assert.rejects(dialChannel((stranger.address() as { port: number }).port, secret, name))
})

test('nobody on the way can make something else of what a caller wants', { timeout: 20_000 }, async t => {
  const { secret, port, taken } = await listening(t)
  const { port: turned } = await between(t, port, line => line.replace('"talk"', '"http"'))
  await assert.rejects(dialChannel(turned, secret, name))
  assert.equal(taken.length, 0)
})

test('a secret that is none is not used, nor replaced', async () => {
  const dir = await freshDir()
  await mkdir(dir, { recursive: true })
  await writeFile(join(dir, 'channel.secret'), 'too short')
  await assert.rejects(homeSecret(dir), /remove server\/channel.secret/)
  assert.equal(await readFile(join(dir, 'channel.secret'), 'utf8'), 'too short')
})

test('a listener that says nothing is another failure than one that is not there', { timeout: 20_000 }, async t => {
  const silent = createServer(socket => socket.on('error', () => undefined).resume()).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as { port: number }
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let over = false
  const dialled = dialChannel(port, 'f'.repeat(64), name).then(
    () => undefined,
    (error: unknown) => {
      over = true
      return error
    }
  )
  while (!over) {
    t.mock.timers.tick(100)
    await turn()
  }
  assert.ok((await dialled) instanceof NoAnswer)
  silent.close()
  await once(silent, 'close')
  const refused = await dialChannel(port, 'f'.repeat(64), name).catch((error: unknown) => error)
  assert.ok(refused instanceof Error && !(refused instanceof NoAnswer))
})
