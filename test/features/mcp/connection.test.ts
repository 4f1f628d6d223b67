import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { setImmediate as pass } from 'node:timers/promises'
import { argumentNames } from '../../../features/mcp/argument-names.ts'
import { type ConnectPorts, connect } from '../../../features/mcp/connection.ts'
import { paced } from '../../../features/mcp/paced.ts'
import { Pools, type PoolsPorts } from '../../../features/mcp/pools.ts'
import { resultOf } from '../../../features/mcp/results.ts'
import { McpServer } from '../../../features/mcp/server.ts'
import type { Program, Shell } from '../../../features/tools-shell/index.ts'
import { keptOf } from '../../helpers/collected.ts'
import { latch } from '../../helpers/latch.ts'
import { freshDir } from '../../helpers/temp.ts'
import { silent } from '../tools/fakes.ts'
import { answering } from './scene.ts'

/** Ports to a server with these pages of tools. */
function portsTo(pages: readonly (readonly string[])[], tools: number): ConnectPorts {
  const answerTo = (method: string, params: { protocolVersion?: string; cursor?: string }) => {
    if (method === 'initialize') {
      const serverInfo = { name: 'paged', version: '1' }
      return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo }
    }
    const page = Number(params.cursor ?? 0)
    const next = page + 1 < pages.length ? { nextCursor: `${page + 1}` } : {}
    return { tools: (pages[page] ?? []).map(name => ({ name, inputSchema: { type: 'object' } })), ...next }
  }
  const fetch = async (_url: string | URL, init?: RequestInit) => {
    if (init?.method !== 'POST') return new Response(null, { status: 405 })
    const { id, method, params = {} } = JSON.parse(String(init.body))
    if (id === undefined) return new Response(null, { status: 202 })
    return Response.json({ jsonrpc: '2.0', id, result: answerTo(method, params) })
  }
  return {
    remote: { fetch, close: () => Promise.resolve() },
    shell: () => undefined,
    version: '1',
    tokens: () => undefined,
    asks: () => false,
    startupMs: () => 10_000,
    ending: () => undefined,
    limits: { tools, messageBytes: 1000, messagesPerSecond: 1 }
  }
}
const config = { transport: 'http', url: 'http://127.0.0.1:1/mcp' } as const
const quiet = { closed: () => undefined, toolsChanged: () => undefined }
const entry = { name: 'paged', config, source: 'global', origin: 'mcp.json', mutable: true } as const

test('tools are listed page by page, as many as may be; those beyond are counted', async () => {
  const connection = await connect(entry, '/', portsTo([['a', 'b'], ['c', 'd'], ['e']], 4), new AbortController().signal, quiet)
  assert.deepEqual([connection.listed.tools.map(({ name }) => name), connection.listed.omitted], [['a', 'b', 'c', 'd'], 1])
  await connection.close()
})

test('a tool that comes while the tools are listed is there', async () => {
  let lists = 0
  const ports = portsTo([[]], 9)
  const fetch = async (url: string | URL, init?: RequestInit) => {
    const { id, method } = JSON.parse(String(init?.body ?? '{}')) as { id?: number; method?: string }
    if (method !== 'tools/list') return ports.remote.fetch(url, init)
    const tools = ['early', 'late'].slice(0, ++lists).map(name => ({ name, inputSchema: { type: 'object' } }))
    const changed = lists === 1 ? [{ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }] : []
    const messages = [...changed, { jsonrpc: '2.0', id, result: { tools } }].map(each => `data: ${JSON.stringify(each)}\n\n`)
    return new Response(messages.join(''), { headers: { 'content-type': 'text/event-stream' } })
  }
  const connection = await connect(entry, '/', { ...ports, remote: { ...ports.remote, fetch } }, new AbortController().signal, quiet)
  assert.deepEqual([connection.listed.tools.map(({ name }) => name), lists], [['early', 'late'], 2])
  assert.equal(await connection.refresh(), false) // nobody is told of a change that is none
  await connection.close()
})

test('a tool that cannot be offered is left out with the reason, and the others are there', async () => {
  const inputSchema = { type: 'object' }
  const tools = [
    { name: 'plain', description: 'd', inputSchema },
    { name: 'untold', description: null, title: 7, inputSchema },
    { name: 'bare' },
    { name: 'list', inputSchema: { type: 'array' } },
    { name: 'empty', inputSchema: { type: 'object', properties: { a: null } } },
    { name: 'task', inputSchema, execution: { taskSupport: 'required' } },
    { name: 'maybe', inputSchema, execution: { taskSupport: 'optional' } },
    { name: '', inputSchema },
    null
  ]
  const ports = portsTo([[]], 9)
  const fetch = async (url: string | URL, init?: RequestInit) => {
    const { id, method } = JSON.parse(String(init?.body ?? '{}')) as { id?: number; method?: string }
    return method === 'tools/list'
      ? Response.json({ jsonrpc: '2.0', id, result: { tools, nextCursor: null } })
      : ports.remote.fetch(url, init)
  }
  const { signal } = new AbortController()
  const connection = await connect(entry, '/', { ...ports, remote: { ...ports.remote, fetch } }, signal, quiet)
  const { listed } = connection
  assert.deepEqual(
    listed.tools.map(({ name, description }) => [name, description]),
    [
      ['plain', 'd'],
      ['untold', ''],
      ['maybe', '']
    ]
  )
  assert.equal(listed.omitted, 6)
  assert.deepEqual(listed.reasons, [
    'bare: it has no schema of its arguments',
    'list: the schema of its arguments is none of an object',
    'empty: the schema of its arguments is none of an object',
    'task: it runs as a task of the server only',
    ': it has no name',
    'a tool: it has no name'
  ])
  await connection.close()
})

test('a server whose greeting cannot be used is told in words', async () => {
  const fetch = async (_url: string | URL, init?: RequestInit) => {
    const { id } = JSON.parse(String(init?.body ?? '{}')) as { id?: number }
    return Response.json({ jsonrpc: '2.0', id, result: { protocolVersion: 7 } })
  }
  const ports = { ...portsTo([[]], 9), remote: { fetch, close: () => Promise.resolve() } }
  await assert.rejects(connect(entry, '/', ports, new AbortController().signal, quiet), ({ message }: Error) => {
    assert.match(message, /^what the server answered cannot be used \(protocolVersion: /)
    assert.doesNotMatch(message, /[{[]/)
    return true
  })
})

/** A server of one event stream, which ends at the first request of this method. */
function endsAt(last: string, capabilities: object) {
  let events: ReadableStreamDefaultController<Uint8Array> | undefined
  const say = (text: string) => events?.enqueue(Buffer.from(text))
  const fetch = async (_url: string | URL, init?: RequestInit) => {
    if (init?.method === 'POST') {
      const { id, method } = JSON.parse(String(init.body)) as { id?: number; method: string }
      const result = { protocolVersion: '2024-11-05', capabilities, serverInfo: { name: 'one', version: '1' } }
      if (method === 'initialize') say(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`)
      if (method === last) events?.close()
      return new Response(null, { status: 202 })
    }
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        events = controller
        say('event: endpoint\ndata: /messages\n\n')
      }
    })
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  }
  const one = { ...entry, config: { transport: 'sse', url: 'http://127.0.0.1:1/sse' } } as const
  return { one, ports: { ...portsTo([[]], 9), remote: { fetch, close: () => Promise.resolve() } } }
}

test('a server of one stream is lost with it, and so are the calls that run', async () => {
  const { one, ports } = endsAt('tools/call', {})
  const server = new McpServer(one, '/', { ...ports, log: silent, backoffMs: [], changed: () => undefined })
  server.start()
  await server.settled
  assert.equal(server.state, 'connected')
  const options = {
    signal: new AbortController().signal,
    timeoutMs: 60_000,
    progress: () => undefined,
    elicit: async () => ({ action: 'cancel' }) as const
  }
  await assert.rejects(server.call(server.generation, 'a', {}, options), /ended while the tool ran/)
  assert.equal(server.state, 'failed')
  await server.close()
})

test('a server of one stream that ends while it lists its tools has not started, and nobody waits for it', async () => {
  const { one, ports } = endsAt('tools/list', { tools: {} })
  await assert.rejects(
    connect(one, '/', { ...ports, startupMs: () => 5000 }, new AbortController().signal, quiet),
    ({ message }: Error) => {
      assert.doesNotMatch(message, /did not start within/)
      return true
    }
  )
})

test('a program that is ended with the list of its tools has not started', async () => {
  const ended = latch<string>()
  let say: (text: string) => void = () => undefined
  const program: Program = {
    pid: 1,
    ended: ended.opened,
    write: async text => {
      const { id, method, params } = JSON.parse(String(text)) as { id?: number; method: string; params: { protocolVersion: string } }
      const serverInfo = { name: 'loud', version: '1' }
      const hello = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo }
      const result = method === 'initialize' ? hello : { tools: [] }
      const noise = method === 'tools/list' ? 'x'.repeat(2000) : ''
      if (id !== undefined) say(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n${noise}`)
    },
    stop: async () => ended.open('it was stopped')
  }
  const start: Shell['start'] = ({ onText }) => {
    say = text => onText('stdout', text)
    return program
  }
  const ports = portsTo([], 9)
  const limits = { ...ports.limits, messagesPerSecond: 100 }
  const shell = () => ({ ...({} as Shell), start })
  const server = new McpServer({ ...entry, config: { transport: 'stdio', command: 'x' } }, '/', {
    ...ports,
    limits,
    shell,
    log: silent,
    backoffMs: [],
    changed: () => undefined
  })
  server.start()
  await server.settled
  assert.deepEqual([server.state, server.error], ['failed', 'it sent a message of more than 1000 characters'])
  await server.close()
})

test('what is asked for again and again is done once a while', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let done = 0
  const ask = paced(async () => void done++, 1000)
  for (let n = 0; n < 5; n++) ask()
  await pass()
  assert.equal(done, 1)
  t.mock.timers.tick(1000)
  await pass()
  assert.equal(done, 2)
  t.mock.timers.tick(5000)
  await pass()
  assert.equal(done, 2)
  ask()
  assert.equal(done, 3)
})

test('texts of a result are bounded together; structured content counts where there is no other', () => {
  const text = { type: 'text', text: 'x'.repeat(60_000) } as const
  const { output, note } = resultOf({ content: [text, text] })
  assert.deepEqual([output.length, note], [100_001, 'The output was cut at 100000 characters.'])
  const structuredContent = { a: 1 }
  assert.equal(resultOf({ content: [{ type: 'text', text: 'plain' }], structuredContent }).output, 'plain')
  assert.equal(resultOf({ content: [], structuredContent }).output, '{"a":1}')
})

test('a part of a result that cannot be read is told, and the others count', () => {
  const text = (value: string) => ({ type: 'text', text: value })
  const weird = [{ type: 'weird', x: 1 }, null, { type: 'text' }, { type: 'image', data: 7 }]
  assert.equal(
    resultOf({ content: [text('before'), ...weird, text('after')], isError: 'no' }).output,
    [
      'before',
      '[content of type weird left out: it cannot be read]',
      '[content left out: it cannot be read]',
      '[content of type text left out: it cannot be read]',
      '[content of type image left out: it cannot be read]',
      'after'
    ].join('\n')
  )
  assert.equal(resultOf({ content: 'none' }).output, '[content left out: it cannot be read]')
  assert.equal(resultOf({}).output, '')
  const image = (data: string) => resultOf({ content: [{ type: 'image', data, mimeType: 'image/png' }] }).output
  assert.equal(image('iVBORw0KGgo=!!'), '[image left out: its base64 is not valid]')
  assert.deepEqual(image('iVBORw\n0KGgo'), [{ type: 'image', media_type: 'image/png', data: 'iVBORw0KGgo=' }])
})

test('bytes of a resource that are text are shown as text, whatever they are called; others are named', () => {
  const resource = (bytes: Uint8Array | string, mimeType?: string) => ({
    type: 'resource',
    resource: { uri: 'x:1', blob: Buffer.from(bytes).toString('base64'), ...(mimeType === undefined ? {} : { mimeType }) }
  })
  const shown = (part: object) => resultOf({ content: [part] }).output
  assert.equal(shown(resource('größer', 'text/plain')), '[resource x:1]\ngrößer')
  assert.equal(shown(resource('{}', 'application/octet-stream')), '[resource x:1]\n{}')
  assert.equal(shown(resource('a')), '[resource x:1]\na')
  assert.equal(
    shown(resource(Uint8Array.of(0x1f, 0x8b, 8), 'application/gzip')),
    '[resource x:1 of type application/gzip left out: it is no text]'
  )
  assert.equal(shown(resource('a\0b', 'text/plain')), '[resource x:1 of type text/plain left out: it is no text]')
  const damaged = { type: 'resource', resource: { uri: 'x:1', blob: 'YWJj!!', mimeType: 'text/plain' } }
  assert.equal(shown(damaged), '[resource x:1 of type text/plain left out: it is no text]')
})

test('an image counts by what it is: what no provider would take is told instead, and texts around it stay apart', () => {
  const image = (data: string, mimeType: string) => ({ type: 'image', data, mimeType }) as const
  const text = (value: string) => ({ type: 'text', text: value }) as const
  const png = 'iVBORw0KGgo='
  const base64 = (value: string) => Buffer.from(value).toString('base64')
  assert.deepEqual(resultOf({ content: [text('before'), image(png, 'image/jpeg'), text('after')] }).output, [
    text('before\n'),
    { type: 'image', media_type: 'image/png', data: png },
    text('after')
  ])
  const left = resultOf({ content: [image('', 'image/png'), image(base64('no image at all'), 'image/png'), image('AAAA', 'image/x-own')] })
  assert.equal(
    left.output,
    [
      '[image left out: it is no image/png]',
      '[image left out: it is no image/png]',
      '[image of type image/x-own left out: no model takes it]'
    ].join('\n')
  )
})

test('arguments whose names a provider refuses are shown under others, and reach the server under their own', () => {
  const long = 'l'.repeat(80)
  const type = 'string'
  const { schema, own } = argumentNames({
    type: 'object',
    properties: { $top: { type, description: 'How many' }, _top: { type }, 'ids[]': true, [long]: { type }, plain: { type }, '': { type } },
    required: ['$top', 'plain']
  })
  const properties = schema.properties as Record<string, unknown>
  const names = Object.keys(properties)
  assert.equal(names.length, 6)
  for (const name of names) assert.match(name, /^[A-Za-z0-9_.-]{1,64}$/)
  const [top = '', same, ids = '', cut = ''] = names
  assert.deepEqual([same, ids, schema.required], ['_top', 'ids_', [top, 'plain']])
  assert.deepEqual(properties[top], { type, description: '$top: How many' })
  const given = { [top]: '1', _top: '2', [ids]: '3', [cut]: '4', plain: '5', $other: '6' }
  assert.deepEqual(own(given), { $top: '1', _top: '2', 'ids[]': '3', [long]: '4', plain: '5', $other: '6' })
  const fine = { type: 'object', properties: { a: { type } } }
  assert.equal(argumentNames(fine).schema, fine)
})

test('a call that was prepared for a server which was started anew since is not made', async () => {
  const server = new McpServer(entry, '/', { ...portsTo([['a']], 9), log: silent, backoffMs: [], changed: () => undefined })
  server.start()
  await server.settled
  const { generation } = server
  await server.restart()
  await server.settled
  const options = {
    signal: new AbortController().signal,
    timeoutMs: 1000,
    progress: () => undefined,
    elicit: async () => ({ action: 'cancel' }) as const
  }
  await assert.rejects(server.call(generation, 'a', {}, options), /was started anew: call the tool again/)
  await server.close()
})

test('a server that is removed while it is started anew is gone when the one before has ended', async () => {
  const ports = portsTo([['a']], 9)
  const ended = latch()
  const fetch = async (url: string | URL, init?: RequestInit) => {
    if (init?.method === 'DELETE') await ended.opened
    const reply = await ports.remote.fetch(url, init)
    reply.headers.set('mcp-session-id', 'one')
    return reply
  }
  const remote = { ...ports.remote, fetch }
  const server = new McpServer(entry, '/', { ...ports, remote, log: silent, backoffMs: [], changed: () => undefined })
  server.start()
  await server.settled
  const restarted = server.restart()
  let isGone = false
  const removed = server.close().then(() => {
    isGone = true
  })
  for (let n = 0; n < 20; n++) await pass()
  assert.equal(isGone, false)
  ended.open()
  await Promise.all([restarted, removed])
})

test('nothing of a call stays with a server that goes on', async () => {
  const server = new McpServer(entry, '/', { ...portsTo([['a']], 9), log: silent, backoffMs: [], changed: () => undefined })
  server.start()
  await server.settled
  const call = async () => {
    const progress = () => undefined
    const elicit = async () => ({ action: 'cancel' }) as const
    await server.call(server.generation, 'a', {}, { signal: new AbortController().signal, timeoutMs: 1000, progress, elicit })
    return [new WeakRef(progress), new WeakRef(elicit)]
  }
  const known = [...(await call()), ...(await call())]
  assert.equal(await keptOf(known), 0)
  await server.close()
})

test('nothing of a connection stays that was closed, while the signal of its server goes on', async () => {
  const { signal } = new AbortController()
  const connected = async () => {
    const events = { closed: () => undefined, toolsChanged: () => undefined }
    const connection = await connect(entry, '/', portsTo([['a']], 9), signal, events)
    await connection.close()
    return [new WeakRef(connection), new WeakRef(events)]
  }
  const known = [...(await connected()), ...(await connected())]
  assert.equal(await keptOf(known), 0)
})

test('a server is started anew when what is left of its failed start has ended', async () => {
  const programs: { readonly stopped: ReturnType<typeof latch<void>>; readonly ended: ReturnType<typeof latch<string>> }[] = []
  const begun = latch()
  const start = (): Program => {
    const [stopped, ended] = [latch(), latch<string>()]
    if (programs.push({ stopped, ended }) > 1) begun.open()
    return {
      pid: 1,
      ended: ended.opened,
      write: () => Promise.reject(new Error('it listens to nobody')),
      stop: async () => {
        stopped.open()
        await ended.opened
      }
    }
  }
  const ports = { ...portsTo([], 1), shell: () => ({ ...({} as Shell), start }), log: silent, backoffMs: [], changed: () => undefined }
  const server = new McpServer({ ...entry, config: { transport: 'stdio', command: 'x' } }, '/', ports)
  server.start()
  await server.settled
  await programs[0]?.stopped.opened
  const restarted = server.restart()
  for (let passes = 0; passes < 50; passes++) await pass()
  assert.deepEqual([server.state, programs.length], ['pending', 1], 'the first program still runs')

  programs[0]?.ended.open('it ended')
  await restarted
  await begun.opened

  programs[1]?.ended.open('it ended')
  await server.close()
})

test('whoever closes all servers waits for those whose start was given up', async () => {
  const started = latch()
  const stopped = latch()
  const ended = latch<string>()
  const program: Program = {
    pid: 1,
    ended: ended.opened,
    write: async () => started.open(),
    stop: async () => {
      stopped.open()
      await ended.opened
    }
  }
  const shell = () => ({ ...({} as Shell), start: () => program })
  const pools = new Pools({ ...portsTo([], 1), shell, log: silent } as unknown as PoolsPorts)
  const stop = new AbortController()
  const asked = pools.probe({ ...entry, config: { transport: 'stdio', command: 'x' } }, '/', stop.signal)
  await started.opened
  stop.abort()
  await assert.rejects(asked, /it was stopped/)
  await stopped.opened
  let isClosed = false
  const closed = pools.close().then(() => {
    isClosed = true
  })
  for (let passes = 0; passes < 50; passes++) await pass()
  assert.equal(isClosed, false, 'its program still runs')
  ended.open('it ended')
  await closed
})

test('a start that is given up while the library still loads rejects, and nothing of it fails where nobody listens', async t => {
  const escaped: unknown[] = []
  const listen = (error: unknown) => void escaped.push(error)
  process.on('unhandledRejection', listen)
  t.after(() => process.off('unhandledRejection', listen))
  const ports: ConnectPorts = {
    remote: { fetch: () => Promise.reject(new Error('nobody is there')), close: () => Promise.resolve() },
    shell: () => undefined,
    version: '1',
    tokens: () => undefined,
    asks: () => false,
    startupMs: () => 1000,
    ending: () => undefined,
    limits: { tools: 1, messageBytes: 1000, messagesPerSecond: 1 }
  }
  const config = { transport: 'http', url: 'http://127.0.0.1:1/mcp' } as const
  const entry = { name: 'late', config, source: 'global', origin: 'mcp.json', mutable: true } as const
  const stop = new AbortController()
  const connecting = connect(entry, '/', ports, stop.signal, quiet)
  stop.abort(new Error('given up'))
  await assert.rejects(connecting)
  for (let n = 0; n < 5; n++) await pass()
  assert.deepEqual(escaped, [])
})

/** Pools of directories without files, with this server of a plugin; `trusted` is asked twice while the servers are found out. */
async function poolsWith(url: string, trusted = async () => false): Promise<Pools> {
  const found = { name: 'one', plugin_id: 'p', server: 'one', config: { url }, root: '/', revision: '1' }
  return new Pools({
    ...portsTo([], 1),
    log: silent,
    home: await freshDir(),
    workspaces: { idOf: (cwd: string) => cwd, trusted },
    plugins: () => ({ mcpServers: async () => [found] }),
    backoffMs: [],
    login: () => undefined
  } as unknown as PoolsPorts)
}

test('a directory whose last session goes while its servers are found out is let go of, and none is started', async () => {
  const [asked, answer] = [latch(), latch()]
  let times = 0
  const pools = await poolsWith('http://127.0.0.1:1/mcp', async () => {
    if (++times === 2) {
      asked.open()
      await answer.opened
    }
    return false
  })
  const use = pools.use('/', () => undefined)
  await asked.opened
  const closed = use.close()
  answer.open()
  await closed
  assert.deepEqual(use.pool.servers, [])
  await pools.close()
})

test('a server that is ending is awaited, also when a session came and went meanwhile', async t => {
  const left = latch<ServerResponse>()
  let ends = 0
  const leave = (reply: ServerResponse) => (ends++ === 0 ? left.open(reply) : void reply.end())
  const { url } = await answering(t, () => {}, undefined, leave)
  const pools = await poolsWith(url)
  const used = (cwd: string) => {
    const connected = latch()
    return { ...connected, use: pools.use(cwd, server => server.state === 'connected' && connected.open()) }
  }
  const first = used('/')
  await first.opened
  const closed = first.use.close()
  const reply = await left.opened
  await used('/').use.close()

  const next = used('/')
  await next.use.ready(0)
  const elsewhere = used('/elsewhere')
  await elsewhere.opened
  assert.deepEqual(
    next.use.pool.servers.map(({ state }) => state),
    ['pending']
  )
  reply.end()
  await next.opened
  await closed
  await Promise.all([next.use.close(), elsewhere.use.close()])
  await pools.close()
})
