/** Servers that are stopped and go on: never two writers of a session, nothing acknowledged lost, no request without an answer. */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { RestClient, SocketClient } from '../../kernel/testing.ts'
import { serve } from '../helpers/cli.ts'
import { journal } from '../helpers/crash-judge.ts'
import { crashScene } from '../helpers/crash-scene.ts'

async function started(t: TestContext, home: string) {
  const server = await serve(t, home, '--port', '0')
  const rest = new RestClient(server.url, server.token)
  t.after(() => rest.close())
  return { ...server, rest }
}

test('a server that is stopped loses its session to another one and, when it goes on, writes nothing more', {
  timeout: 90_000
}, async t => {
  const { home, place, upstream } = await crashScene(t)
  const [first, second] = [await started(t, home), await started(t, home)]
  const id = ((await first.rest.json('POST', '/api/v1/sessions', { metadata: { cwd: place } })).data as { id: string }).id
  const path = `/api/v1/sessions/${id}/prompts`
  const prompt = (rest: RestClient, text: string) => rest.json('POST', path, { content: [{ type: 'text', text }] })
  const [here, there] = [await SocketClient.open(first.url, first.token), await SocketClient.open(second.url, second.token)]
  for (const socket of [here, there]) await socket.request('subscribe', { session_ids: [id], cursors: { [id]: { seq: 0 } } })
  const hung = (await prompt(second.rest, 'hang')).data as { prompt_id: string }
  for (const socket of [here, there]) await socket.next('assistant.delta')

  const mine = ((await second.rest.json('POST', '/api/v1/sessions', { metadata: { cwd: place } })).data as { id: string }).id
  process.kill(first.child.pid!, 'SIGSTOP')
  const late = await SocketClient.open(second.url, second.token)
  const ids = [id, mine]
  const hello = await late.request('client_hello', { subscriptions: ids, cursors: Object.fromEntries(ids.map(each => [each, { seq: 0 }])) })
  assert.deepEqual([hello.code, hello.payload.accepted_subscriptions, Object.keys(hello.payload.cursors)], [0, ids, [mine]])
  let accepted = await prompt(second.rest, 'talk now')
  while (accepted.code === 50005) accepted = await prompt(second.rest, 'talk now')
  assert.equal(accepted.code, 0, accepted.msg)
  const { prompt_id } = accepted.data as { prompt_id: string }
  await there.next(frame => frame.type === 'prompt.completed' && frame.payload.promptId === prompt_id)
  const before = await journal(second.url, second.token, id)

  upstream.release(9) // what the stopped one waits for is there when it goes on
  process.kill(first.child.pid!, 'SIGCONT')
  await here.next(frame => frame.type === 'resync_required')
  const last = await prompt(first.rest, 'talk again')
  assert.equal(last.code, 0, last.msg)
  const last_id = (last.data as { prompt_id: string }).prompt_id
  for (const socket of [here, there, late])
    await socket.next(frame => frame.type === 'prompt.completed' && frame.payload.promptId === last_id)

  const after = await journal(second.url, second.token, id)
  assert.deepEqual(after.slice(0, before.length), before)
  assert.equal(after[0]?.epoch, after.at(-1)?.epoch)
  assert.deepEqual(
    after.map(frame => frame.seq),
    after.map((_, at) => at + 1)
  )
  assert.deepEqual(
    after.filter(frame => frame.type === 'turn.ended').map(frame => frame.payload.reason),
    ['cancelled', 'completed', 'completed']
  )
  const submitted = after.filter(frame => frame.type === 'prompt.submitted').map(frame => frame.payload.promptId)
  assert.deepEqual([...new Set(submitted)], [hung.prompt_id, prompt_id, last_id])
  for (const { frames } of [there, late]) {
    const seen = frames.filter(frame => frame.session_id === id && frame.seq !== undefined && !frame.volatile).map(frame => frame.seq)
    assert.deepEqual(
      seen,
      seen.map((_, at) => at + 1)
    )
  }
})

test('what goes on in a session that was taken from a stopped server is right in the lists of all others', { timeout: 90_000 }, async t => {
  const { home, place } = await crashScene(t)
  const [first, second, third] = [await started(t, home), await started(t, home), await started(t, home)]
  const id = ((await first.rest.json('POST', '/api/v1/sessions', { metadata: { cwd: place } })).data as { id: string }).id
  const watching = await SocketClient.open(third.url, third.token)
  await third.rest.json('POST', `/api/v1/sessions/${id}/prompts`, { content: [{ type: 'text', text: 'hang' }] })
  const work = ({ type, session_id }: { type: string; session_id?: string }) => type === 'event.session.work_changed' && session_id === id
  await watching.next(frame => work(frame) && frame.payload.busy === true)
  const busy = async ({ rest }: { rest: RestClient }) =>
    ((await rest.json('GET', '/api/v1/sessions')).data as { items: { busy: boolean }[] }).items[0]?.busy
  assert.deepEqual([await busy(second), await busy(third)], [true, true])

  process.kill(first.child.pid!, 'SIGSTOP')
  const { code, msg } = await second.rest.json('GET', `/api/v1/sessions/${id}`)
  assert.equal(code, 0, msg)
  await watching.next(frame => work(frame) && frame.payload.busy === false)
  assert.deepEqual([await busy(second), await busy(third)], [false, false])
  process.kill(first.child.pid!, 'SIGCONT')
  while (await busy(first)) await new Promise(resolve => setTimeout(resolve, 50))
  assert.deepEqual([await busy(second), await busy(third)], [false, false])
})

test('a session that is deleted while its server stands still does not come back when that server goes on', {
  timeout: 90_000
}, async t => {
  const { home, place } = await crashScene(t)
  const [first, second] = [await started(t, home), await started(t, home)]
  const id = ((await first.rest.json('POST', '/api/v1/sessions', { metadata: { cwd: place } })).data as { id: string }).id
  const socket = await SocketClient.open(first.url, first.token)
  await socket.request('subscribe', { session_ids: [id] })
  await first.rest.json('POST', `/api/v1/sessions/${id}/prompts`, { content: [{ type: 'text', text: 'talk' }] })
  await socket.next('prompt.completed')

  process.kill(first.child.pid!, 'SIGSTOP')
  assert.equal((await second.rest.json('DELETE', `/api/v1/sessions/${id}`)).code, 0)
  process.kill(first.child.pid!, 'SIGCONT')
  await socket.next('resync_required')
  first.child.kill('SIGTERM')
  assert.equal((await first.ended).code, 0)

  assert.equal((await second.rest.json('GET', `/api/v1/sessions/${id}`)).code, 40401)
  assert.deepEqual(await readdir(join(home, 'sessions')), ['.index.jsonl'])
})

test('a batch archives a session whose server stands still as soon as it can be taken from it, also where that server was never heard', {
  timeout: 90_000
}, async t => {
  const { home, place } = await crashScene(t)
  const [first, second] = [await started(t, home), await started(t, home)]
  const made = async () => ((await first.rest.json('POST', '/api/v1/sessions', { metadata: { cwd: place } })).data as { id: string }).id
  const ids = [await made(), await made()]
  await second.rest.json('GET', `/api/v1/sessions/${ids[0]}/status`)

  process.kill(first.child.pid!, 'SIGSTOP')
  const third = await started(t, home)
  const answers = await Promise.all(
    [second, third].map(({ rest }, at) => rest.json('POST', '/api/v2/sessions:archive', { ids: [ids[at]] }))
  )
  assert.deepEqual(
    answers.map(({ data }) => data),
    ids.map(id => ({ results: [{ id, ok: true }], succeeded: 1, failed: 0 }))
  )
})
