import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { appendFile, chmod, cp, mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { Searcher } from '../../../features/search/searcher.ts'
import { snippetOf } from '../../../features/search/snippet.ts'
import { archiveSession, deleteSession, restoreSession } from '../../../features/sessions/index.ts'
import { undoSession } from '../../../features/undo/index.ts'
import { lockHolder } from '../../../kernel/index.ts'
import { freshDir } from '../../helpers/temp.ts'
import { start } from './start.ts'

test('prompts, replies and titles are found in all sessions, with what a client needs to show them', async t => {
  const { find, turn, session, session_id } = await start(t)
  await turn('Tell me about Walruses, please')
  const other = await session('Everything about walruses')
  const all = await find({ query: 'WALRUSES' })
  assert.deepEqual(all.items.map(({ role }) => role).sort(), ['assistant', 'title', 'title', 'user'])
  assert.deepEqual([all.has_more, all.source, all.index_state.state, all.index_state.total_sessions], [false, 'index', 'ready', 2])
  assert.deepEqual([all.index_state.indexed_sessions, all.index_state.documents, all.page_token], [2, 4, undefined])
  const [title] = (await find({ query: 'everything', role: 'title' })).items
  assert.deepEqual(
    [title?.session_id, title?.agent_id, title?.session_title, title?.turn],
    [other, '', 'Everything about walruses', undefined]
  )
  const [reply] = (await find({ query: 'walruses', role: 'assistant' })).items
  assert.deepEqual([reply?.session_id, reply?.agent_id, reply?.turn, reply?.step_id], [session_id, 'main', 0, 't0.1'])
  assert.deepEqual([reply?.snippet, reply?.session_title], ['the reply to Walruses', 'Tell me about Walruses, please'])
  const [prompt] = (await find({ query: 'walruses', role: 'user' })).items
  assert.deepEqual([prompt?.turn, prompt?.step_id, prompt?.snippet], [0, undefined, 'Tell me about Walruses, please'])
  assert.ok(Math.abs((prompt?.time ?? 0) - Date.now()) < 60_000 && (prompt?.score ?? 0) > 0)
})

test('terms are joined by AND or OR, Chinese and Japanese are found by their characters, and order follows sort', async t => {
  const { texts, turn } = await start(t)
  await turn('alpha beta')
  await turn('alpha gamma 数据库连接失败')
  await turn('über alpha, Straße: 東京タワー')
  const user = { role: 'user' }
  assert.deepEqual(await texts({ ...user, query: 'beta alpha' }), ['alpha beta'])
  assert.equal((await texts({ ...user, query: 'beta gamma' })).length, 0)
  assert.equal((await texts({ ...user, query: 'beta gamma', op: 'OR' })).length, 2)
  assert.deepEqual(
    (await texts({ ...user, query: 'alpha', sort: 'time_asc' })).map(text => text.slice(0, 10)),
    ['alpha beta', 'alpha gamm', 'über alpha']
  )
  assert.equal((await texts({ ...user, query: 'alpha', sort: 'time_desc' }))[2], 'alpha beta')
  for (const query of ['数据库', '连接', '库', 'gamma 失败', '東京', 'タワー', 'ÜBER'])
    assert.equal((await texts({ ...user, query })).length, 1, query)
  for (const query of ['数库', 'alph', '京東']) assert.equal((await texts({ ...user, query })).length, 0, query)
})

test('literal mode finds exact substrings without a false one, newest first', async t => {
  const { find, texts, turn } = await start(t)
  await turn('call fetch_user(id) twice')
  await turn('prefetch_users: 用户数据; call fetch user')
  const user = { role: 'user', mode: 'literal' }
  assert.deepEqual(await texts({ ...user, query: 'etch_user' }), ['prefetch_users: 用户数据; call fetch user', 'call fetch_user(id) twice'])
  for (const query of ['FETCH_USER(ID', 'id) tw', '(id', 'all fetch_'])
    assert.deepEqual(await texts({ ...user, query }), ['call fetch_user(id) twice'], query)
  for (const query of ['户数', 'users: 用', ': 用户数据;']) assert.equal((await texts({ ...user, query })).length, 1, query)
  for (const query of ['fetch user(', 'user_fetch', 'fetch  user']) assert.equal((await texts({ ...user, query })).length, 0, query)
  assert.equal((await find({ ...user, query: 'fetch' })).items[0]?.score, 0)
})

test('pages follow one another whatever is added, and a token is good for its query alone', async t => {
  const { find, ask, turn } = await start(t)
  for (let n = 0; n < 5; n++) await turn(`number ${n} of the series`)
  for (const body of [
    { query: 'series', role: 'user' },
    { query: 'series', role: 'user', sort: 'time_asc' },
    { query: 'series', role: 'user', mode: 'literal' }
  ]) {
    const seen: string[] = []
    let page_token: string | undefined
    do {
      const page = await find({ ...body, page_size: 2, ...(page_token ? { page_token } : {}) })
      seen.push(...page.items.map(({ snippet }) => snippet))
      assert.equal(page.has_more, page.page_token !== undefined)
      page_token = page.page_token
      if (seen.length === 2) await turn(`${JSON.stringify(body).length}: one more of the series`)
    } while (page_token)
    assert.equal(seen.length, new Set(seen).size)
    assert.ok(['0', '1', '2', '3', '4'].every(n => seen.includes(`number ${n} of the series`)))
  }
  const { page_token } = await find({ query: 'series', page_size: 1 })
  assert.equal((await ask({ query: 'series', page_size: 50, page_token })).code, 0)
  const changes = [
    { query: 'serie' },
    { op: 'OR' },
    { sort: 'time_asc' },
    { role: 'user' },
    { start_time: 1 },
    { end_time: 4_000_000_000_000 },
    { container: { agent_id: 'main' } },
    { mode: 'literal' }
  ]
  for (const change of changes) {
    const reply = await ask({ query: 'series', page_token, ...change })
    assert.deepEqual([reply.code, reply.details?.[0]?.path], [40001, 'body.page_token'], JSON.stringify(change))
  }
  for (const other of ['x', `${page_token}.`, `${page_token} `, `${page_token}=`]) {
    assert.equal((await ask({ query: 'series', page_token: other })).code, 40001, other)
  }
})

test('a query without a term or with too many is refused', async t => {
  const { ask } = await start(t)
  const words = Array.from({ length: 33 }, (_, n) => `w${n}`)
  const bad = ['', '   ', '!!!', words.join(' ')].map(query => ({ query }))
  for (const body of [
    ...bad,
    { query: 'x', mode: 'literal' },
    { query: 'a', page_size: 51 },
    { query: 'a', page_size: 0 },
    { query: 'a', role: 'tool' }
  ])
    assert.equal((await ask(body)).code, 40001, JSON.stringify(body))
  assert.equal((await ask({ query: [...words.slice(1), ...words.slice(1)].join(' ') })).code, 0)
})

test('a message is found at once; what is undone, archived or deleted is not, and comes back with the session', async t => {
  const { find, texts, turn, call, session, session_id } = await start(t)
  await find({ query: 'nothing' })
  await turn('the first walnut')
  await turn('the second walnut')
  const user = { query: 'walnut', role: 'user' }
  assert.equal((await texts(user)).length, 2)
  await call(undoSession, { params: { session_id }, body: { count: 1 } as never })
  assert.deepEqual(await texts(user), ['the first walnut'])
  await turn('the third walnut')
  assert.deepEqual(await texts({ ...user, sort: 'time_asc' }), ['the first walnut', 'the third walnut'])
  await call(archiveSession, { params: { session_id } })
  assert.deepEqual(await texts(user), [])
  const there = await find({ query: 'walnut', container: { session_id } })
  assert.deepEqual([there.source, there.index_state.documents, there.items.length], ['live', 5, 3], 'its title is among them')
  assert.deepEqual(await texts({ query: 'walnut' }), [])
  await call(restoreSession, { params: { session_id } })
  assert.equal((await texts(user)).length, 2)
  const other = await session('a walnut tree')
  assert.equal((await find({ query: 'walnut', role: 'title' })).items.filter(({ session_id: id }) => id === other).length, 1)
  await call(deleteSession, { params: { session_id: other } })
  assert.equal((await find({ query: 'walnut', role: 'title' })).items.filter(({ session_id: id }) => id === other).length, 0)
})

test('a container that is live in this process is searched as it is now; role, agent and time narrow every search', async t => {
  const { find, turn, session, session_id } = await start(t)
  await turn('about pears')
  const other = await session('pears elsewhere')
  const { items, source, index_state } = await find({ query: 'pears', container: { session_id } })
  assert.deepEqual([source, index_state], ['live', { state: 'ready', indexed_sessions: 1, total_sessions: 1, documents: 3 }])
  assert.deepEqual([...new Set(items.map(({ session_id: id }) => id))], [session_id])
  assert.equal((await find({ query: 'p', mode: 'literal', container: { session_id } })).items.length, 3)
  const first = await find({ query: 'pears', container: { session_id }, page_size: 1 })
  const second = await find({ query: 'pears', container: { session_id }, page_size: 1, page_token: first.page_token })
  assert.notDeepEqual(second.items, first.items)
  assert.deepEqual((await find({ query: 'pears', container: { session_id: 'session_nope' } })).items, [])
  assert.equal((await find({ query: 'pears', container: { agent_id: 'main' } })).items.length, 2)
  assert.equal((await find({ query: 'pears' })).items.filter(({ session_id: id }) => id === other).length, 1)
  const time = items.find(({ role }) => role === 'user')?.time ?? 0
  assert.equal((await find({ query: 'pears', role: 'user', start_time: time, end_time: time })).items.length, 1)
  assert.equal((await find({ query: 'pears', role: 'user', start_time: time + 1 })).items.length, 0)
  assert.equal((await find({ query: 'pears', role: 'user', end_time: time - 1 })).items.length, 0)
})

test('another server of the home reads the index and what came later; a damaged snapshot is made anew', async t => {
  const home = await freshDir()
  const one = await start(t, { home })
  await one.turn('about figs')
  assert.equal((await one.find({ query: 'figs' })).index_state.state, 'ready')
  const [name] = (await readdir(join(home, 'search'))).filter(file => file.endsWith('.jsonl'))
  const two = await start(t, { home })
  assert.deepEqual(
    [(await two.find({ query: 'figs', role: 'user' })).items.length, (await two.find({ query: 'figs' })).index_state.state],
    [1, 'readonly']
  )
  const container = { session_id: one.session_id }
  assert.equal((await two.find({ query: 'figs', container })).source, 'index', 'it is loaded in the other server')
  await two.turn('about plums')
  const own = await two.find({ query: 'plums', container: { session_id: two.session_id } })
  assert.deepEqual([own.source, own.index_state.state], ['live', 'ready'])
  const { page_token } = await one.find({ query: 'figs', page_size: 1 })
  const elsewhere = await two.ask({ query: 'figs', page_size: 1, page_token })
  assert.deepEqual([page_token !== undefined, elsewhere.code], [true, 40001], 'an index that was built by itself')
  await one.turn('more about figs')
  await one.find({ query: 'figs' })
  while ((await two.find({ query: 'figs', role: 'user' })).items.length < 2);
  await one.stop()
  await two.stop()
  const found = async () => {
    const next = await start(t, { home })
    const { items, index_state } = await next.find({ query: 'figs', role: 'user' })
    assert.deepEqual([items.length, index_state.state, index_state.degraded], [2, 'ready', undefined])
    await next.stop()
  }
  await found()
  for (const damage of ['', '{"v":1}\n{"d":["main",', '{"v":99}\n', '\0\0\0', '{"v":1}\n{"d":5}\n{"c":{}}\n']) {
    await writeFile(join(home, 'search', String(name)), damage)
    await found()
  }
  await rm(join(home, 'search'), { recursive: true })
  await found()
})

test('a pipe in place of a journal and loops of links hide what is in them, and nothing else', async t => {
  const home = await freshDir()
  const one = await start(t, { home })
  const [lost, piped] = [await one.session('lost'), await one.session('piped')]
  for (const id of [one.session_id, lost, piped]) await one.turn('about figs', id)
  await one.stop()
  const workspace = (await readdir(join(home, 'sessions'))).find(name => !name.startsWith('.')) ?? ''
  const inside = (...path: string[]) => join(home, 'sessions', workspace, ...path)
  const [state, journal] = [inside(lost, 'state.json'), inside(piped, 'agents/main/wire.jsonl')]
  await Promise.all([rm(state), rm(journal)])
  await symlink(state, state)
  await symlink(inside('loop'), inside('loop'))
  execFileSync('mkfifo', [journal])
  const two = await start(t, { home })
  const { items } = await two.find({ query: 'figs', role: 'user' })
  assert.ok(items.some(({ session_id }) => session_id === one.session_id))
  assert.ok(items.every(({ session_id }) => session_id !== piped))
})

test('what was found while the disk took nothing is found by the next server, too', async t => {
  const home = await freshDir()
  const one = await start(t, { home })
  await one.turn('the first fig')
  await one.find({ query: 'fig' })
  const place = join(home, 'search')
  await rename(place, `${place}.kept`)
  await writeFile(place, '')
  await one.turn('the second fig')
  const { items, index_state } = await one.find({ query: 'fig', role: 'user' })
  assert.equal(items.length, 2)
  assert.match(index_state.degraded ?? '', new RegExp(`^session ${one.session_id} could not be read: (ENOTDIR|EEXIST)$`)) // newer Nodes say EEXIST
  await rm(place)
  await rename(`${place}.kept`, place)
  await one.turn('the third fig')
  assert.equal((await one.find({ query: 'fig', role: 'user' })).items.length, 3)
  await one.stop()
  const next = await start(t, { home })
  assert.equal((await next.find({ query: 'fig', role: 'user' })).items.length, 3)
})

test('a line of a journal that is damaged in itself hides nothing else of its session', async t => {
  const home = await freshDir()
  const one = await start(t, { home })
  await one.turn('the first fig')
  await one.stop()
  const workspace = (await readdir(join(home, 'sessions'))).find(name => !name.startsWith('.')) ?? ''
  const journal = join(home, 'sessions', workspace, one.session_id, 'agents/main/wire.jsonl')
  const damaged = ['{"type":"prompt.settled"}', '{"type":"prompt.settled","prompt_ids":1}', '{"type":"message","role":"user","content":1}']
  await appendFile(journal, damaged.map(line => `${line}\n`).join(''))
  const two = await start(t, { home })
  await two.turn('the second fig', one.session_id)
  const { items, index_state } = await two.find({ query: 'fig', role: 'user' })
  assert.deepEqual([items.length, index_state.degraded], [2, undefined])
})

const closed = process.getuid?.() === 0 ? 'nothing is closed to root' : false
test('what was found beside a journal that cannot be read is found by the next server, too', { skip: closed }, async t => {
  const home = await freshDir()
  const one = await start(t, { home })
  await one.turn('the first fig')
  const workspace = (await readdir(join(home, 'sessions'))).find(name => !name.startsWith('.')) ?? ''
  const agents = join(home, 'sessions', workspace, one.session_id, 'agents')
  const behind = join(agents, 'zz/wire.jsonl') // read behind that of the main agent
  await cp(join(agents, 'main'), join(agents, 'zz'), { recursive: true })
  const all = (await one.find({ query: 'fig', role: 'user' })).items.length
  await appendFile(behind, '\n')
  await chmod(behind, 0)
  await one.turn('the second fig')
  await one.find({ query: 'fig', role: 'user' })
  await chmod(behind, 0o600)
  await one.turn('the third fig')
  assert.equal((await one.find({ query: 'fig', role: 'user' })).items.length, all + 2)
  await one.stop()
  const next = await start(t, { home })
  assert.equal((await next.find({ query: 'fig', role: 'user' })).items.length, all + 2)
})

test('a snapshot that cannot be removed keeps no search from its answer', async t => {
  const home = await freshDir()
  const { find, turn, call, session_id } = await start(t, { home })
  await turn('the first fig')
  await find({ query: 'fig' })
  const file = join(home, 'search', `${session_id}.jsonl`)
  await rm(file)
  await mkdir(join(file, 'in the way'), { recursive: true })
  await call(archiveSession, { params: { session_id } })
  assert.deepEqual((await find({ query: 'fig' })).items, [])
  await call(deleteSession, { params: { session_id } })
  assert.deepEqual((await find({ query: 'fig' })).items, [])
})

test('with a deleted session goes what the index has of it on disk, also when nobody searches any more', { timeout: 30_000 }, async t => {
  const home = await freshDir()
  const { find, turn, call, session, session_id } = await start(t, { home })
  await turn('the only quince')
  const other = await session('one more')
  await turn('another quince', other)
  assert.equal((await find({ query: 'quince', role: 'user' })).items.length, 2)
  const kept = async () => (await readdir(join(home, 'search'))).filter(name => name.endsWith('.jsonl')).sort()
  assert.deepEqual(await kept(), [`${session_id}.jsonl`, `${other}.jsonl`].sort())
  await call(deleteSession, { params: { session_id } })
  while ((await kept()).includes(`${session_id}.jsonl`)) await new Promise(setImmediate)
  assert.deepEqual(await kept(), [`${other}.jsonl`])
})

test('a search that begins while the thread of the one before ends keeps the snapshots of the home', { timeout: 30_000 }, async t => {
  const home = await freshDir()
  const searcher = new Searcher(home, 1000)
  t.after(() => searcher.close())
  const find = () =>
    searcher.search({ query: 'x', mode: 'terms', op: 'AND', sort: 'score', page_size: 20 }, false, [], new AbortController().signal)
  const end = Worker.prototype.terminate
  const ended: Promise<unknown>[] = []
  let go = () => {}
  const held = new Promise<void>(resolve => {
    go = resolve
  })
  t.mock.method(Worker.prototype, 'terminate', function (this: Worker) {
    ended.push(held.then(() => end.call(this)))
    return ended.at(-1)
  })
  t.mock.timers.enable({ apis: ['setTimeout'] })
  await find()
  t.mock.timers.tick(1000)
  assert.equal(ended.length, 1)
  await find()
  go()
  await Promise.all(ended)
  for (let passes = 0; passes < 100; passes++) await new Promise(setImmediate)
  assert.ok(await lockHolder(join(home, 'search', 'lock')))

  t.mock.timers.tick(1000)
  while (await lockHolder(join(home, 'search', 'lock'))) await new Promise(setImmediate)
})

test('a snippet is a piece of the text as it was written, whatever is equal to its characters', async t => {
  const written = `${'Ａlso … ½ ﬁne™ e\u0301t E\u0301 '.repeat(12)}the Needle ${'İn … ﬁne '.repeat(20)}`
  const { turn, texts, session_id } = await start(t)
  await turn(written)
  for (const container of [{}, { session_id }]) {
    for (const body of [{ query: 'needle' }, { query: 'the needle', mode: 'literal' }]) {
      const [shown] = await texts({ ...body, role: 'user', container })
      const piece = (shown ?? '').replace(/^…|…$/g, '')
      assert.ok(written.includes(piece), piece)
      assert.ok(Math.abs(piece.indexOf('Needle') - (body.mode ? 84 : 80)) <= 1, piece)
    }
  }
})

test('a snippet begins and ends with whole characters', () => {
  const shown = snippetOf(`a${'😀'.repeat(60)} needle ${'😀'.repeat(60)}`, 'terms', ['needle'])
  assert.ok(shown.startsWith('…😀') && shown.endsWith('😀…'), shown)
})
