import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadDefaultPacks } from '../../../features/default-packs.ts'
import { resolveApproval } from '../../../features/interactions/index.ts'
import { restartMcpServer } from '../../../features/mcp/index.ts'
import { toolName } from '../../../features/mcp/names.ts'
import { RunningCalls } from '../../../features/mcp/running-calls.ts'
import { imageHeader } from '../../../features/media/image-header.ts'
import media from '../../../features/media/pack.ts'
import { disablePlugin, installPlugin } from '../../../features/plugins/index.ts'
import { answerQuestion, dismissQuestion, type ItemAnswer, type QuestionRequest } from '../../../features/questions/index.ts'
import questions from '../../../features/questions/pack.ts'
import { createSession, deleteSession, readSession } from '../../../features/sessions/index.ts'
import { listTools } from '../../../features/tools/index.ts'
import { trustWorkspace, untrustWorkspace } from '../../../features/workspaces/index.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { mockedBuiltins } from '../../helpers/builtins.ts'
import { latch } from '../../helpers/latch.ts'
import { testModel } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { answering, pidsIn, runs, start, stdio, userFile, web, writeJson } from './scene.ts'

interface Named {
  readonly name: string
  readonly status: string
}

test('tools of a stdio server are offered in the first turn, called, and shown to clients', async t => {
  const scene = await start(t, { 'my db': stdio('db', undefined, { env: { OWN: 'yes' }, cwd: '/' }) })
  const [echo, env, failed, picture] = await scene.run(
    ['mcp__my_db__echo', { text: 'hi' }],
    ['mcp__my_db__env'],
    ['mcp__my_db__fail'],
    ['mcp__my_db__picture']
  )
  assert.deepEqual(echo, { output: 'db says hi', isError: false })
  const variables = JSON.parse(String(env?.output)) as Record<string, string>
  assert.deepEqual([variables.OWN, variables.cwd, variables.PATH === process.env.PATH], ['yes', '/', true])
  assert.deepEqual(failed, { output: 'it is broken', isError: true })
  assert.match(JSON.stringify(picture?.output), /"type":"image"/)
  const offered = scene.llm.requests[0]?.tools.find(({ name }) => name === 'mcp__my_db__echo')
  assert.deepEqual([offered?.description, offered?.parameters.required], ['Says it again', ['text']])
  assert.deepEqual(await scene.servers(), { 'my db': { status: 'connected', last_error: undefined, tool_count: 9 } })
  const { data } = await scene.call(listTools, { query: { session_id: scene.session_id } })
  const shown = data.tools.find(({ name }) => name === 'mcp__my_db__echo')
  assert.deepEqual(shown, {
    name: 'mcp__my_db__echo',
    description: 'Says it again',
    input_schema: null,
    source: 'mcp',
    mcp_server_id: 'my_db',
    active: true
  })
  assert.deepEqual(scene.of('tool.list.updated')[0], { reason: 'mcp.connected', serverName: 'my db' })
})

test('an image that is larger than models should get is made smaller, as others are, and its original is kept', async t => {
  const scene = await start(t, { db: stdio() }, { packs: [media] })
  Object.assign(scene.llm.llm, { resolve: () => ({ ...testModel, capabilities: ['image_in'] }) })
  await scene.run(['mcp__db__picture', { width: 3000 }])
  const shown = scene.llm.requests[1]?.messages.at(-1)
  const parts = shown?.role === 'tool' ? shown.content : []
  const image = parts.find(part => part.type === 'image')
  const { width, height } = imageHeader(Buffer.from(image?.data ?? '', 'base64')) ?? {}
  assert.deepEqual([width, height], [2000, 200])
  const text = parts.map(part => (part.type === 'text' ? part.text : '')).join('\n')
  const [, file = ''] =
    /An image was made smaller: 3000x300 px, \d+ bytes became 2000x200 px, \d+ bytes\. The original is in (\S+)/.exec(text) ?? []
  assert.equal(imageHeader(await readFile(file))?.width, 3000)
})

test('what a server asks in the middle of a call is a question to the user, and a number that is none is asked for again', async t => {
  const scene = await start(t, { db: stdio('good', undefined, { toolTimeoutMs: 20_000 }) }, { packs: [questions] })
  const asked = () => scene.of('event.question.requested') as unknown as QuestionRequest[]
  const next = async (count: number) => {
    if (asked().length < count) await scene.waitFor(() => asked().length >= count)
    return asked()[count - 1] as QuestionRequest
  }
  const answer = async ({ question_id }: QuestionRequest, answers: Record<string, ItemAnswer>) => {
    const params = { session_id: scene.session_id, question_id }
    assert.equal((await scene.call(answerQuestion, { params, body: { answers } })).code, 0)
  }
  const running = scene.run(['mcp__db__ask'], { permission_mode: 'yolo' })
  const first = await next(1)
  assert.deepEqual(
    first.questions.map(({ question, options }) => [question, options.map(({ label }) => label)]),
    [
      ['The MCP server db asks: Which one?\ncolor (Color)', ['red', 'blue']],
      ['sure', ['Yes', 'No']],
      ['count (a whole number from 1)', ['Decline', 'Cancel']],
      ['note: what to remember', ['Leave it out', 'Decline', 'Cancel']]
    ]
  )
  await answer(first, {
    q_0: { kind: 'single', option_id: 'opt_0_1' },
    q_1: { kind: 'single', option_id: 'opt_1_0' },
    q_2: { kind: 'other', text: 'many' },
    q_3: { kind: 'single', option_id: 'opt_3_0' }
  })
  const second = await next(2)
  assert.deepEqual(second.questions[0]?.question, '“many” does not fit. count (a whole number from 1)')
  await answer(second, { q_0: { kind: 'other', text: '3' } })
  const [result] = await running
  assert.deepEqual(JSON.parse(String(result?.output)), { action: 'accept', content: { color: 'blue', sure: true, count: 3 } })

  const again = scene.run(['mcp__db__ask'], { permission_mode: 'yolo' })
  const third = await next(3)
  await answer(third, { q_0: { kind: 'single', option_id: 'opt_0_0' }, q_2: { kind: 'single', option_id: 'opt_2_0' } })
  assert.deepEqual((await again)[0]?.output, '{"action":"decline"}')

  const dismissed = scene.run(['mcp__db__ask'], { permission_mode: 'yolo' })
  await scene.call(dismissQuestion, { params: { session_id: scene.session_id, question_id: (await next(4)).question_id } })
  assert.deepEqual((await dismissed)[0]?.output, '{"action":"cancel"}')

  assert.deepEqual((await scene.run(['mcp__db__ask']))[0]?.output, '{"action":"cancel"}', 'in auto mode nobody is asked')
  assert.equal(asked().length, 4)
  const mute = await start(t, { db: stdio('good') })
  assert.match(String((await mute.run(['mcp__db__ask']))[0]?.output), /does not support/, 'without questions servers are told so')
})

test('the time of a call stands still while the user is asked, and a question of which nobody knows the call is asked of nobody', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const calls = new RunningCalls()
  const asking = latch()
  const form = { message: 'Sure?' }
  const elicit = async () => {
    await asking.opened
    return { action: 'decline' } as const
  }
  const over = new AbortController().signal
  const done = calls.run({ timeoutMs: 1000, elicit }, async late => {
    const answer = calls.ask(form, over)
    t.mock.timers.tick(5000)
    assert.equal(late.aborted, false)
    asking.open()
    assert.deepEqual(await answer, { action: 'decline' })
    const other = calls.run({ timeoutMs: 10_000, elicit }, () => calls.ask(form, over))
    assert.deepEqual(await other, { action: 'cancel' })
    t.mock.timers.tick(1000)
    assert.equal(late.aborted, true)
  })
  await done
  assert.deepEqual(await calls.ask(form, over), { action: 'cancel' })
})

test('several questions of a call stop its time once, and those that are open at its end are withdrawn', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const calls = new RunningCalls()
  const first = latch()
  const declined = { action: 'decline' } as const
  const withdrawn: boolean[] = []
  let asked = 0
  const elicit = async (_form: object, signal: AbortSignal) => {
    if (asked++ === 0) await first.opened
    else await new Promise(resolve => signal.addEventListener('abort', resolve))
    withdrawn.push(signal.aborted)
    return declined
  }
  const ask = () => calls.ask({ message: 'Sure?' }, new AbortController().signal)
  let open: Promise<unknown> | undefined
  await calls.run({ timeoutMs: 1000, elicit }, async late => {
    const one = ask()
    open = ask()
    first.open()
    await one
    t.mock.timers.tick(5000)
    assert.equal(late.aborted, false)
  })
  await open
  assert.deepEqual(withdrawn, [false, true])
})

test('without a rule a call of an MCP tool is asked for', async t => {
  const scene = await start(t, { db: stdio() })
  const turn = scene.run(['mcp__db__echo', { text: 'hi' }], { permission_mode: 'manual' })
  const { payload } = await scene.waitFor(({ type }) => type === 'event.approval.requested')
  const { approval_id, tool_name, tool_input_display } = payload as { approval_id: string; tool_name: string; tool_input_display: object }
  assert.equal(tool_name, 'mcp__db__echo')
  assert.deepEqual(tool_input_display, { kind: 'generic', summary: 'db: echo', detail: { text: 'hi' } })
  await scene.call(resolveApproval, { params: { session_id: scene.session_id, approval_id }, body: { decision: 'rejected' } })
  const [refused] = await turn
  assert.equal(refused?.isError, true)
})

test('streamable HTTP and server-sent events are spoken, with the headers of the configuration', async t => {
  const site = await web(t)
  process.env.SVC_TEST_MCP_TOKEN = 'secret-token'
  const scene = await start(t, {
    http: { url: `${site.url}/mcp`, headers: { 'x-own': '1' } },
    sse: { transport: 'sse', url: `${site.url}/sse`, bearerTokenEnvVar: 'SVC_TEST_MCP_TOKEN' }
  })
  const results = await scene.run(['mcp__http__echo', { text: 'a' }], ['mcp__sse__echo', { text: 'b' }])
  assert.deepEqual(
    results.map(({ output }) => output),
    ['http says a', 'sse says b']
  )
  assert.ok(site.headers.some(headers => headers['x-own'] === '1'))
  assert.ok(site.headers.some(({ authorization }) => authorization === 'Bearer secret-token'))
  delete process.env.SVC_TEST_MCP_TOKEN
})

test('a project and a plugin get no key of the server as the token of theirs', async t => {
  const site = await web(t)
  Object.assign(process.env, { SVC_CODE_TEST_PASSWORD: 'server-secret', SVC_TEST_MCP_TOKEN: 'project-token' })
  const scene = await start(t, {})
  await writeJson(join(scene.cwd, '.svc-code/mcp.json'), {
    mcpServers: {
      own: { url: `${site.url}/mcp`, bearerTokenEnvVar: 'SVC_CODE_TEST_PASSWORD' },
      plain: { url: `${site.url}/mcp`, bearerTokenEnvVar: 'SVC_TEST_MCP_TOKEN' }
    }
  })
  const { workspace_id } = (await scene.call(readSession, { params: { session_id: scene.session_id } })).data
  await scene.call(trustWorkspace, { params: { workspace_id } })
  const [refused, heard] = await scene.run(['mcp__own__echo', { text: 'a' }], ['mcp__plain__echo', { text: 'b' }])
  assert.deepEqual([refused?.isError, heard?.isError], [true, false])
  assert.match((await scene.servers()).own?.last_error ?? '', /SVC_CODE_TEST_PASSWORD is not set/)
  const sent = site.headers.map(({ authorization }) => authorization)
  assert.deepEqual([sent.includes('Bearer server-secret'), sent.includes('Bearer project-token')], [false, true])
  delete process.env.SVC_CODE_TEST_PASSWORD
  delete process.env.SVC_TEST_MCP_TOKEN
})

test('a server that dies in a call ends that call, is shown as an error, and is there again after a restart', async t => {
  const scene = await start(t, { db: stdio('db') })
  const [died] = await scene.run(['mcp__db__die'])
  assert.equal(died?.isError, true)
  assert.match(String(died?.output), /ended while the tool ran/)
  assert.equal((await scene.servers()).db?.status, 'error')
  const restarted = scene.call(restartMcpServer, { params: { mcp_server_id: 'db' } })
  assert.deepEqual((await restarted).data, { restarting: true })
  const [again] = await scene.run(['mcp__db__echo', { text: 'back' }])
  assert.equal(again?.output, 'db says back')
  assert.equal((await scene.call(restartMcpServer, { params: { mcp_server_id: 'none' } })).code, 40408)
  const states = scene.of('mcp.server.status').map(({ server }) => (server as { status: string }).status)
  assert.deepEqual(states, ['connected', 'failed', 'pending', 'connected'])
})

test('restarts that are asked for at once are one: the server is connecting until the new one is there, and one process is left', async t => {
  const file = join(await freshDir(), 'pids')
  const scene = await start(t, { db: stdio('db', file), off: stdio('good', undefined, { enabled: false }) })
  await scene.run(['mcp__db__echo', { text: 'a' }])
  // At once indeed: on a busy machine what comes by sockets may find the new one there.
  const restart = (mcp_server_id: string) => scene.kernel.inject(restartMcpServer, { params: { mcp_server_id } })
  await Promise.all([restart('db'), restart('db'), restart('off'), restart('db')])
  const { db, off } = await scene.servers()
  assert.deepEqual([db?.status, off?.status], ['connecting', 'disconnected'])
  assert.equal((await scene.run(['mcp__db__echo', { text: 'b' }]))[0]?.output, 'db says b')
  const pids = await pidsIn(file)
  assert.deepEqual(pids.map(runs), [false, true])
})

test('a server that was lost comes back by itself', async t => {
  const scene = await start(t, { db: stdio('db') }, { config: { mcp: { backoff_ms: [1] } } })
  await scene.run(['mcp__db__die'])
  const [again] = await scene.run(['mcp__db__echo', { text: 'x' }])
  assert.equal(again?.output, 'db says x')
})

test('a server that dies soon after every start stays lost when the pauses are used up, until somebody asks for it', async t => {
  const file = join(await freshDir(), 'pids')
  const scene = await start(t, { db: stdio('good', file) }, { config: { mcp: { backoff_ms: [1, 1] } } })
  for (let starts = 1; starts <= 3; starts++) await scene.run(['mcp__db__die'])
  const [gone] = await scene.run(['mcp__db__echo', { text: 'x' }])
  assert.equal(gone?.isError, true)
  assert.equal((await pidsIn(file)).length, 3)
  assert.equal((await scene.servers()).db?.status, 'error')
  await scene.call(restartMcpServer, { params: { mcp_server_id: 'db' } })
  assert.equal((await scene.run(['mcp__db__echo', { text: 'x' }]))[0]?.isError, false)
})

test('a server that does not start is an error with what it said, and holds up nobody', async t => {
  const scene = await start(t, {
    dies: stdio('dies'),
    silent: stdio('silent', undefined, { startupTimeoutMs: 100 }),
    none: { command: '/no/such/program' },
    astray: { command: 'true', cwd: '/no/such/directory' },
    off: stdio('good', undefined, { enabled: false }),
    gone: { url: 'http://127.0.0.1:12/mcp' },
    gone_events: { transport: 'sse', url: 'http://127.0.0.1:10/sse' },
    blocked: { url: 'http://127.0.0.1:1/mcp' },
    unset: { url: 'http://127.0.0.1:1/mcp', bearerTokenEnvVar: 'SVC_TEST_NOT_SET' },
    good: stdio('good')
  })
  const [echo] = await scene.run(['mcp__good__echo', { text: 'hi' }])
  assert.equal(echo?.output, 'good says hi')
  const servers = await scene.servers()
  assert.deepEqual(Object.fromEntries(Object.entries(servers).map(([name, { status }]) => [name, status])), {
    dies: 'error',
    silent: 'error',
    none: 'error',
    astray: 'error',
    off: 'disconnected',
    gone: 'error',
    gone_events: 'error',
    blocked: 'error',
    unset: 'error',
    good: 'connected'
  })
  assert.match(String(servers.dies?.last_error), /exited with 3: no database/)
  assert.match(String(servers.astray?.last_error), /could not be started: \/no\/such\/directory is no directory/)
  assert.match(String(servers.silent?.last_error), /did not start within 0\.1 s/)
  for (const server of [servers.gone, servers.gone_events])
    assert.equal(server?.last_error, 'it cannot be reached: nothing listens there (ECONNREFUSED)')
  assert.match(String(servers.blocked?.last_error), /cannot be reached: bad port/)
  assert.match(String(servers.unset?.last_error), /SVC_TEST_NOT_SET is not set/)
})

test('what a server says of its end is shown without the keys that it was given', async t => {
  const key = 'k7-given-to-the-server'
  const says = (...words: string[]) => ['-e', `console.error(${words.join(' + ')}); process.exit(3)`]
  const site = createServer((_request, response) => response.writeHead(500).end(`no such key: ${key}`)).listen(0, '127.0.0.1')
  await once(site, 'listening')
  t.after(() => site.close())
  const scene = await start(t, {
    variable: { command: process.execPath, args: says('"key " + process.env.DB_PASSWORD'), env: { DB_PASSWORD: 'pw17', DB_HOST: 'db1' } },
    shape: {
      command: process.execPath,
      args: says('"host " + process.env.WHERE + " key " + process.env.WITH'),
      env: { WHERE: 'db1', WITH: key }
    },
    header: { url: `http://127.0.0.1:${(site.address() as AddressInfo).port}/mcp`, headers: { 'x-access': key } }
  })
  await scene.run()
  const told = [JSON.stringify(await scene.servers()), JSON.stringify(scene.of('mcp.server.status'))]
  for (const each of told) {
    assert.match(each, /exited with 3: key \[redacted\]/)
    assert.match(each, /host db1 key \[redacted\]/)
    assert.match(each, /no such key: \[redacted\]/)
    assert.doesNotMatch(each, /pw17|k7-given/)
  }
})

test('hostile servers end with a clear error, and the session goes on', async t => {
  const site = await web(t)
  const scene = await start(
    t,
    { endless: stdio('endless'), flood: stdio('flood'), strange: stdio('strange'), many: stdio('many'), huge: { url: `${site.url}/huge` } },
    { config: { mcp: { message_bytes: 2_000_000, messages_per_second: 3000 } } }
  )
  const [echo, large, many] = await scene.run(
    ['mcp__strange__echo', { text: 'hi' }],
    ['mcp__strange__large'],
    ['mcp__many__echo', { text: 'x' }]
  )
  assert.equal(echo?.output, 'strange says hi')
  assert.ok(String(large?.output).length < 110_000)
  assert.equal(many?.output, 'many says x')
  const servers = await scene.servers()
  assert.match(String(servers.endless?.last_error), /more than 2000000 characters/)
  assert.match(String(servers.flood?.last_error), /more than 3000 messages/)
  assert.match(String(servers.huge?.last_error), /larger than|terminated|failed/)
  assert.equal(servers.many?.tool_count, 500)
})

test('a call that takes too long ends, and so does one whose turn is aborted', async t => {
  const scene = await start(t, { db: stdio('db', undefined, { toolTimeoutMs: 100 }) })
  const [late] = await scene.run(['mcp__db__hang'])
  assert.match(String(late?.output), /did not answer within 0\.1 s/)
  const [echo] = await scene.run(['mcp__db__echo', { text: 'still there' }])
  assert.equal(echo?.output, 'db says still there')
})

test('an answer that ends or is cut before it is whole ends its call, and a refusal is told as one whatever its code', async t => {
  const { url } = await answering(t, ({ id, params }, reply) => {
    if (params.name === 'refused')
      return void reply.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32001, message: 'no session' } }))
    reply.writeHead(200, { 'content-type': 'text/event-stream' })
    if (params.name === 'whole')
      reply.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'all' }] } })}\n\n`)
    else if (params.name === 'ended') reply.end(': nothing\n\n')
    else reply.write(': nothing\n\n', () => reply.destroy())
  })
  const scene = await start(t, { site: { url } })
  const results = await scene.run(...['whole', 'ended', 'cut', 'refused'].map(name => [`mcp__site__${name}`] as const))
  const broken = 'The MCP server site ended its answer before it was whole; whether it did its work is not known.'
  assert.deepEqual(
    results.map(({ output }) => output),
    ['all', broken, broken, 'The MCP server site refused the call: MCP error -32001: no session']
  )
})

test('a stream that brings more messages in a second than a server may send is cut, and its call ends', async t => {
  const message = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } }
  const { url } = await answering(t, (_, reply) => {
    reply.writeHead(200, { 'content-type': 'text/event-stream' })
    const flood = () => {
      while (!reply.destroyed && reply.write(`data: ${JSON.stringify(message)}\n\n`.repeat(100)));
      reply.once('drain', flood)
    }
    flood()
  })
  const scene = await start(t, { site: { url } }, { config: { mcp: { messages_per_second: 3000 } } })
  const [result] = await scene.run(['mcp__site__whole'])
  assert.match(String(result?.output), /ended its answer before it was whole/)
})

test('an answer that was cut is resumed, and one that cannot be ends its call at once; nothing of one that is over is resumed', async t => {
  const resumed: string[] = []
  const ids = new Map<string, number>()
  const answerTo = (name: string, answer: object) => `data: ${JSON.stringify({ jsonrpc: '2.0', id: ids.get(name), ...answer })}\n\n`
  const { url } = await answering(
    t,
    ({ id, params: { name } }, reply) => {
      ids.set(name, id)
      reply.writeHead(200, { 'content-type': 'text/event-stream' })
      reply.write(`retry: 1\nid: ${name}\ndata:\n\n`)
      if (name === 'refused') reply.end(answerTo(name, { error: { code: -32001, message: 'no' } }))
      else reply.write(': nothing\n\n', () => reply.destroy())
    },
    (last, reply) => {
      resumed.push(last)
      if (last === 'whole') reply.setHeader('content-type', 'text/event-stream')
      if (last === 'whole') reply.end(answerTo(last, { result: { content: [{ type: 'text', text: 'all' }] } }))
      else reply.writeHead(last === 'cut' ? 500 : 405).end()
    }
  )
  const scene = await start(t, { site: { url, toolTimeoutMs: 600_000 } })
  const results = await scene.run(...['refused', 'whole', 'ended', 'cut'].map(name => [`mcp__site__${name}`] as const))
  const broken = 'The MCP server site ended its answer before it was whole; whether it did its work is not known.'
  assert.deepEqual(
    results.map(({ output }) => output),
    ['The MCP server site refused the call: MCP error -32001: no', 'all', broken, broken]
  )
  assert.deepEqual(resumed, ['whole', 'ended', 'cut', 'cut'])
})

test('a server that has ended its session is connected anew at once', async t => {
  let calls = 0
  const { url } = await answering(t, ({ id }, reply) => {
    if (calls++ === 0) reply.writeHead(404).end()
    else reply.end(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'all' }] } }))
  })
  const scene = await start(t, { site: { url } })
  const [gone] = await scene.run(['mcp__site__whole'])
  assert.equal(gone?.output, 'The MCP server site has ended its session and did nothing; it is being connected anew: call the tool again.')
  assert.equal((await scene.run(['mcp__site__whole']))[0]?.output, 'all')
})

test('a call over HTTP that is given up leaves no connection open', async t => {
  const closed: Promise<unknown>[] = []
  const { url } = await answering(t, ({ params: { name } }, reply) => {
    closed.push(once(reply, 'close'))
    if (name === 'cut') reply.writeHead(200, { 'content-type': 'text/event-stream' }).write('id: cut\ndata:\n\n')
  })
  const scene = await start(t, { site: { url, toolTimeoutMs: 100 } })
  const results = await scene.run(['mcp__site__whole'], ['mcp__site__cut'])
  for (const { output } of results) assert.match(String(output), /did not answer within 0\.1 s/)
  await Promise.all(closed)
})

test('a tool that a server brings later is there in the next turn', async t => {
  const scene = await start(t, { db: stdio('db') })
  await scene.run(['mcp__db__grow'])
  await scene.waitFor(
    ({ type, payload }) => type === 'mcp.server.status' && (payload as { server: { toolCount: number } }).server.toolCount === 10
  )
  const [grown] = await scene.run(['mcp__db__grown'])
  assert.equal(grown?.output, 'new')
})

test('only tools that the configuration lets through are offered', async t => {
  const scene = await start(t, {
    a: stdio('a', undefined, { enabledTools: ['echo', 'fail'], disabledTools: ['fail'] }),
    b: stdio('b', undefined, { disabledTools: ['env'] })
  })
  await scene.run()
  const offered = scene.llm.requests[0]?.tools.map(({ name }) => name).filter(name => name.startsWith('mcp__')) ?? []
  assert.deepEqual(
    offered.filter(name => name.startsWith('mcp__a__')),
    ['mcp__a__echo']
  )
  assert.equal(offered.filter(name => name.startsWith('mcp__b__')).length, 8)
})

test('layers of a project count when it is trusted, the later ones by name, and go when the trust goes', async t => {
  const scene = await start(t, { one: stdio('user'), two: stdio('user') })
  await mkdir(join(scene.cwd, '.git'))
  await writeJson(join(scene.cwd, '.mcp.json'), { mcpServers: { two: stdio('root'), three: stdio('root') } })
  await writeJson(join(scene.cwd, '.svc-code', 'mcp.json'), { mcpServers: { three: stdio('local') } })
  const said = async () => {
    const results = await scene.run(...['one', 'two', 'three'].map(name => [`mcp__${name}__echo`, { text: '' }] as const))
    return results.map(({ output }) => String(output).split(' ')[0])
  }
  assert.deepEqual(await said(), ['user', 'user', 'Tool'])
  const { workspace_id } = (await scene.call(readSession, { params: { session_id: scene.session_id } })).data
  await scene.call(trustWorkspace, { params: { workspace_id } })
  assert.deepEqual(await said(), ['user', 'root', 'local'])
  await scene.call(untrustWorkspace, { params: { workspace_id } })
  assert.deepEqual(await said(), ['user', 'user', 'Tool'])
})

test('a change of the file counts from the next turn, and a file that is damaged changes nothing', async t => {
  const scene = await start(t, { one: stdio('first') })
  const said = async () => (await scene.run(['mcp__one__echo', { text: '' }]))[0]?.output
  assert.equal(await said(), 'first says ')
  await userFile(scene.home, { one: stdio('second') })
  assert.equal(await said(), 'second says ')
  await writeFile(join(scene.home, 'mcp.json'), '{')
  assert.equal(await said(), 'second says ')
  await userFile(scene.home, {})
  assert.match(String(await said()), /not found|not there/)
})

test('servers and their tools keep the order of the configuration when one of them is started anew', async t => {
  const scene = await start(t, { a: stdio('a'), b: stdio('b') })
  const order = async () => {
    await scene.run()
    const offered = scene.llm.requests.at(-1)?.tools.flatMap(({ name }) => /^mcp__(.)__echo$/.exec(name)?.[1] ?? [])
    return [Object.keys(await scene.servers()), offered]
  }
  assert.deepEqual(await order(), [
    ['a', 'b'],
    ['a', 'b']
  ])
  await userFile(scene.home, { a: stdio('another'), b: stdio('b') })
  assert.deepEqual(await order(), [
    ['a', 'b'],
    ['a', 'b']
  ])
})

test('an edit of the file counts while nobody asks: a server that is gone ends with the calls that it runs', async t => {
  const scene = await start(t, { one: stdio('one') })
  const running = scene.run(['mcp__one__hang'])
  await scene.waitFor(({ type }) => type === 'tool.call.started')
  await userFile(scene.home, { two: stdio('two') })
  const [result] = await running
  assert.match(String(result?.output), /one (ended while the tool ran|was removed|is not connected)/)
  await scene.status('one', 'removed')
  await scene.status('two', 'connected')
})

test('a server that takes its time to end holds up neither a turn nor other servers, but the one that takes its place', async t => {
  const left = latch<ServerResponse>()
  const { url } = await answering(t, () => {}, undefined, left.open)
  const scene = await start(t, { old: { url } })
  await scene.status('old', 'connected')
  await userFile(scene.home, { old: { url, toolTimeoutMs: 5 }, fresh: stdio('fresh') })
  const reply = await left.opened
  await scene.status('fresh', 'connected')
  const states = () => scene.of('mcp.server.status').map(({ server }) => `${(server as Named).name} ${(server as Named).status}`)
  assert.deepEqual(states(), ['old connected', 'fresh connected'])
  reply.end()
  await scene.waitFor(() => states().filter(state => state === 'old connected').length === 2)
  assert.deepEqual(states(), ['old connected', 'fresh connected', 'old removed', 'old connected'])
})

test('a server of a directory whose last session went is awaited by the one that its next session starts', async t => {
  const left = latch<ServerResponse>()
  const { url } = await answering(t, () => {}, undefined, left.open)
  const scene = await start(t, { old: { url }, fresh: stdio('fresh') })
  await scene.status('old', 'connected')
  await scene.status('fresh', 'connected')
  const deleted = scene.call(deleteSession, { params: { session_id: scene.session_id } })
  const reply = await left.opened
  const { id } = (await scene.call(createSession, { body: { metadata: { cwd: scene.cwd } } })).data
  const connected = (name: string) =>
    scene.waitFor(({ type, session_id, payload }) => {
      const { server } = payload as { server: Named }
      return type === 'mcp.server.status' && session_id === id && server.name === name && server.status === 'connected'
    })
  let isConnected = false
  const again = connected('old').then(() => {
    isConnected = true
  })
  await connected('fresh')
  assert.equal(isConnected, false)
  reply.end()
  await again
  await deleted
})

test('a file that a trusted project gets later counts while nobody asks, and none once the trust is gone', async t => {
  const scene = await start(t, {})
  await mkdir(join(scene.cwd, '.git'))
  const { workspace_id } = (await scene.call(readSession, { params: { session_id: scene.session_id } })).data
  await scene.call(trustWorkspace, { params: { workspace_id } })
  assert.deepEqual(await scene.servers(), {})
  await writeJson(join(scene.cwd, '.mcp.json'), { mcpServers: { late: stdio('late') } })
  await scene.status('late', 'connected')
  await scene.call(untrustWorkspace, { params: { workspace_id } })
  await scene.status('late', 'removed')
})

test('a file counts while nobody asks when its directory comes, goes, and comes again as another one', async t => {
  const scene = await start(t, {})
  const { workspace_id } = (await scene.call(readSession, { params: { session_id: scene.session_id } })).data
  await scene.call(trustWorkspace, { params: { workspace_id } })
  const dir = join(scene.cwd, '.svc-code')
  for (const name of ['one', 'two', 'three']) {
    await writeJson(join(dir, 'mcp.json'), { mcpServers: { [name]: stdio(name) } })
    await scene.status(name, 'connected')
    await rm(dir, { recursive: true })
    await scene.status(name, 'removed')
  }
  await mkdir(dir)
  await scene.servers()
  await rename(dir, `${dir}-old`)
  await writeJson(join(dir, 'mcp.json'), { mcpServers: { four: stdio('four') } })
  await scene.status('four', 'connected')
})

test('sessions of one directory share a server, which ends with the server', async t => {
  const file = join(await freshDir(), 'pids')
  const scene = await start(t, { db: stdio('db', file) })
  await scene.run(['mcp__db__echo', { text: 'a' }])
  await scene.call(createSession, { body: { metadata: { cwd: scene.cwd } } })
  await scene.servers()
  const pids = await pidsIn(file)
  assert.equal(pids.length, 1)
  assert.ok(pids.every(runs))
  await scene.stop()
  assert.ok(!pids.some(runs))
})

test('names of tools are made of safe characters, and those that are too long end in a hash', () => {
  assert.equal(toolName('plugin-kit:db', 'do it!'), 'mcp__plugin-kit_db__do_it_')
  const long = toolName('a'.repeat(50), 'b'.repeat(50))
  assert.equal(long.length, 64)
  assert.match(long, /_[0-9a-f]{8}$/)
  assert.notEqual(long, toolName('a'.repeat(50), `${'b'.repeat(49)}c`))
})

test('servers of a plugin come and go with it', async t => {
  const scene = await start(t, {})
  const dir = await freshDir()
  await writeJson(join(dir, 'svc.plugin.json'), { name: 'kit', mcpServers: { db: stdio('kit') } })
  const installed = await scene.call(installPlugin, { body: { source: dir } })
  assert.equal(installed.code, 0, installed.msg)
  await writeJson(join(dir, 'svc.plugin.json'), { name: 'kit', mcpServers: { db: { ...stdio('kit'), command: 'node' } } })
  assert.equal((await scene.call(installPlugin, { body: { source: dir } })).data.mcpServerCount, 1)
  const said = async () => (await scene.run(['mcp__plugin-kit_db__echo', { text: 'x' }]))[0]?.output
  assert.equal(await said(), 'kit says x')
  await scene.call(disablePlugin, { params: { plugin_id: 'kit' } })
  assert.match(String(await said()), /not found|not there/)
})

test('a server of a plugin is told where the plugin and the home are, and may say otherwise', async t => {
  const scene = await start(t, {})
  const dir = await freshDir()
  const server = { ...stdio('kit'), command: 'node' }
  const mcpServers = { db: server, own: { ...server, env: { SVC_PLUGIN_ROOT: 'mine' } } }
  await writeJson(join(dir, 'svc.plugin.json'), { name: 'kit', mcpServers })
  assert.equal((await scene.call(installPlugin, { body: { source: dir } })).code, 0)
  const [db, own] = await scene.run(['mcp__plugin-kit_db__env', {}], ['mcp__plugin-kit_own__env', {}])
  const { SVC_PLUGIN_ROOT, SVC_CODE_HOME } = JSON.parse(String(db?.output))
  assert.deepEqual([SVC_PLUGIN_ROOT, SVC_CODE_HOME], [join(scene.home, 'plugins', 'managed', 'kit'), scene.home])
  assert.equal(JSON.parse(String(own?.output)).SVC_PLUGIN_ROOT, 'mine')
})

test('a plugin whose server cannot be understood is not installed, and one that came to be so keeps nobody from his servers', async t => {
  const scene = await start(t, { own: stdio('own') })
  const [dir, other] = [await freshDir(), await freshDir()]
  const manifest = (args: unknown) => ({ name: 'kit', mcpServers: { db: { ...stdio('kit'), command: 'node', args } } })
  await writeJson(join(dir, 'svc.plugin.json'), manifest('./server.js'))
  const refused = await scene.call(installPlugin, { body: { source: dir } })
  assert.deepEqual([refused.code, refused.details], [40001, [{ path: 'body.source', message: 'mcpServers.db: args expected array' }]])

  await writeJson(join(dir, 'svc.plugin.json'), manifest(['-e', '']))
  assert.equal((await scene.call(installPlugin, { body: { source: dir } })).code, 0)
  await scene.status('plugin-kit:db', 'failed')
  await writeJson(join(scene.home, 'plugins', 'managed', 'kit', 'svc.plugin.json'), manifest('./server.js'))
  await writeJson(join(other, 'svc.plugin.json'), { name: 'other', mcpServers: { db: { ...stdio('other'), command: 'node' } } })
  assert.equal((await scene.call(installPlugin, { body: { source: other } })).code, 0)
  await scene.status('plugin-other:db', 'connected')
  await scene.status('own', 'connected')
  const { own, 'plugin-kit:db': kit } = await scene.servers()
  assert.deepEqual(
    [own?.status, kit?.status, kit?.last_error],
    ['connected', 'error', 'its configuration cannot be used: args expected array (kit)']
  )
})

test('a server whose configuration cannot be used is an error that says so, and the others run', async t => {
  const scene = await start(t, { wrong: { ...stdio(), args: 'server.js' }, none: {}, off: { enabled: false }, good: stdio('good') })
  const [echo] = await scene.run(['mcp__good__echo', { text: 'hi' }])
  assert.equal(echo?.output, 'good says hi')
  const { wrong, none, off } = await scene.servers()
  const file = join(scene.home, 'mcp.json')
  assert.equal(wrong?.last_error, `its configuration cannot be used: args expected array (${file})`)
  assert.equal(none?.last_error, `its configuration cannot be used: transport must be stdio, http or sse (${file})`)
  assert.deepEqual([wrong?.status, none?.status, off?.status], ['error', 'error', 'disconnected'])
  await userFile(scene.home, { wrong: stdio('right'), good: stdio('good') })
  assert.equal((await scene.run(['mcp__wrong__echo', { text: 'hi' }]))[0]?.output, 'right says hi')
})

test('whoever runs the server is told of a file that cannot be understood', async t => {
  const told: string[] = []
  const scene = await start(t, {}, { told })
  await writeFile(join(scene.home, 'mcp.json'), '{')
  await scene.servers()
  assert.deepEqual(told, [`warning: MCP servers stay as they are: ${join(scene.home, 'mcp.json')}: it is no JSON`])
})

test('a file that could not be read is read again, though it is as it was', async t => {
  const told: string[] = []
  const scene = await start(t, {}, { told })
  await scene.servers()
  const { open } = fs
  t.mock.method(fs, 'open', (path: string, ...rest: [number, (error: Error | null, fd: number) => void]) => {
    if (path === join(scene.home, 'mcp.json')) rest[1](Object.assign(new Error('too many open files'), { code: 'EMFILE' }), -1)
    else open(path, ...rest)
  })
  const restore = mockedBuiltins(t)
  await userFile(scene.home, { good: stdio('good', undefined, { enabled: false }) })
  for (let times = 0; times < 2; times++) assert.deepEqual(await scene.servers(), {})
  assert.deepEqual(told, [`warning: MCP servers stay as they are: ${join(scene.home, 'mcp.json')}: it cannot be read: EMFILE`])
  restore()
  assert.deepEqual(Object.keys(await scene.servers()), ['good'])
})

test('a plugin that is installed anew has its servers started anew when its files are others', async t => {
  const scene = await start(t, {})
  const dir = await freshDir()
  const { command, args } = stdio('')
  const version = async (said: string) => {
    await writeJson(join(dir, 'svc.plugin.json'), { name: 'kit', mcpServers: { db: { command: './serve.sh' } } })
    await writeFile(join(dir, 'serve.sh'), `#!/bin/sh\nexec ${command} ${args[0]} ${said}\n`, { mode: 0o755 })
    assert.equal((await scene.call(installPlugin, { body: { source: dir } })).code, 0)
    return (await scene.run(['mcp__plugin-kit_db__echo', { text: 'x' }]))[0]?.output
  }
  assert.equal(await version('first'), 'first says x')
  assert.equal(await version('second'), 'second says x')
  const starts = () => scene.of('mcp.server.status').filter(({ server }) => (server as { status: string }).status === 'connected').length
  const before = starts()
  assert.equal(await version('second'), 'second says x')
  assert.equal(starts(), before)
})

test('servers of a plugin still follow it at once when the pack of plugins was reloaded meanwhile', async t => {
  const file = join(await freshDir(), 'pids')
  const scene = await start(t, {})
  const dir = await freshDir()
  await writeJson(join(dir, 'svc.plugin.json'), { name: 'kit', mcpServers: { db: { ...stdio('kit', file), command: 'node' } } })
  await scene.kernel.reload('plugins')
  await scene.call(installPlugin, { body: { source: dir } })
  await scene.status('plugin-kit:db', 'connected')
  await scene.call(disablePlugin, { params: { plugin_id: 'kit' } })
  await scene.status('plugin-kit:db', 'removed')
})

test('fifty servers do not hold up the start of the server: they start with the first session', async t => {
  const file = join(await freshDir(), 'pids')
  const home = await freshDir()
  await userFile(home, Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`s${n}`, stdio('dies', file)])))
  await startTestKernel(t, { packs: await loadDefaultPacks(), home })
  assert.deepEqual(await pidsIn(file), [])
})
