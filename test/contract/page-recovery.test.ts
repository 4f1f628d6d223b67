/** A strict web page that loses its connection, or its server, again and again (contract 3, Reconnect and recovery). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serve } from '../helpers/cli.ts'
import { Page } from '../helpers/page.ts'
import { bubblesOf } from '../helpers/page-session.ts'
import { frameJudge, newSession, place, prompt, scene } from '../helpers/scene.ts'

async function agree(page: Page, session_id: string): Promise<void> {
  await page.settled()
  assert.deepEqual(page.problems, [])
  const snapshot = (await page.get(`/api/v1/sessions/${session_id}/snapshot`)).data
  assert.deepEqual(page.session(session_id).bubbles, bubblesOf(snapshot.messages.items))
  assert.deepEqual([page.session(session_id).seq, page.session(session_id).epoch], [snapshot.as_of_seq, snapshot.epoch])
}

/** Repeatable numbers in [0, 1). */
function dice(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

test('two hundred reconnects at random points of a streaming turn lose nothing and repeat nothing', async t => {
  let reconnects = 0
  const {
    page: open,
    cwd,
    server
  } = await scene(t, (_body, n) =>
    reconnects >= 200
      ? [{ text: 'the end' }]
      : [
          // Steps of some length: a snapshot has the newest hundred messages, and shall have all.
          { thinking: `thought ${n} ${'and on '.repeat(60)}`, chunks: 90, every_ms: 1 },
          { text: `text ${n} ${'🙂 and so on '.repeat(60)}`, chunks: 180, every_ms: 1 },
          { tool: { name: 'Glob', args: { pattern: `*.${n}` } } },
          { tool: { name: 'Glob', args: { pattern: `*.${n}x` } } }
        ]
  )
  const watcher = await open()
  const id = await newSession(watcher, cwd)
  await watcher.openSession(id)
  const pages = await Promise.all([1, 2, 3, 4].map(() => Page.open(t, server)))
  await Promise.all(pages.map(page => page.openSession(id)))
  await prompt(watcher, id, 'talk')
  const over = watcher.next('prompt.completed').then(() => 'over')
  await Promise.all(
    pages.map(async (page, at) => {
      const random = dice(at + 1)
      while (reconnects < 200) {
        let left = 1 + Math.floor(random() * 20)
        if ((await Promise.race([over, page.next(() => --left <= 0, page.frames.length)])) === 'over') break
        await page.reconnect()
        reconnects++
      }
    })
  )
  await over
  const { seq } = watcher.session(id)
  for (const page of pages) if (page.session(id).seq < seq) await page.next(frame => frame.session_id === id && frame.seq === seq)
  for (const page of [watcher, ...pages]) await agree(page, id)
  assert.equal(watcher.gaps, 0)
  assert.ok(reconnects >= 200, `${reconnects}`)
  t.diagnostic(`gaps ${pages.map(page => page.gaps)}`)
})

test('pages that open a session at random points of a streaming turn have the whole of it', async t => {
  let opened = 0
  const {
    page: open,
    cwd,
    server
  } = await scene(t, (_body, n) =>
    opened >= 40
      ? [{ text: 'the end' }]
      : [{ text: `text ${n} ${'word '.repeat(40)}`, chunks: 80, every_ms: 1 }, { tool: { name: 'Glob', args: { pattern: `*.${n}` } } }]
  )
  const watcher = await open()
  const id = await newSession(watcher, cwd)
  await watcher.openSession(id)
  await prompt(watcher, id, 'talk')
  const over = watcher.next('prompt.completed')
  const pages: Page[] = []
  for (; opened < 40; opened++) {
    const page = await Page.open(t, server)
    pages.push(page)
    await page.openSession(id, 'subscribe first')
  }
  await over
  const { seq } = watcher.session(id)
  for (const page of pages) if (page.session(id).seq < seq) await page.next(frame => frame.session_id === id && frame.seq === seq)
  for (const page of [watcher, ...pages]) await agree(page, id)
  assert.equal(Math.max(...pages.map(page => page.gaps)), 0)
})

test('text that comes between snapshot and subscribe shows as a gap, also when the step has no more of it', async t => {
  const {
    page: open,
    cwd,
    upstream
  } = await scene(t, [[{ text: 'one ' }, { hang: true }, { text: 'two' }, { tool: { name: 'Bash', args: { command: 'echo hi' } } }]])
  const first = await open()
  const id = await newSession(first, cwd)
  await first.openSession(id)
  await prompt(first, id, 'talk')
  await first.next('assistant.delta')
  const late = await open()
  await late.openSession(id, async () => {
    upstream.release()
    await first.next('event.approval.requested')
  })
  await late.next('assistant.delta')
  await agree(late, id)
  assert.equal(late.gaps, 1)
  assert.equal(first.gaps, 0)
})

test('a cold session is resubscribed by the hello after a restart, and its next turn reaches the page', async t => {
  const where = await place(t, [[{ text: 'one' }], [{ text: 'two' }]])
  const first = await serve(t, where.home, '--port', '0')
  const page = await Page.open(t, first, { judge: await frameJudge(first) })
  const id = await newSession(page, where.cwd)
  await page.openSession(id)
  await prompt(page, id, 'first')
  await page.next('prompt.completed')
  const before = { seq: page.session(id).seq, epoch: page.session(id).epoch }
  first.child.kill('SIGTERM')
  assert.equal((await first.ended).code, 0)

  const second = await serve(t, where.home, '--port', '0')
  const from = page.frames.length
  await page.reconnect(second)
  const hello = await page.next(frame => frame.type === 'ack', from)
  assert.deepEqual(hello.payload.accepted_subscriptions, [id])
  assert.deepEqual(hello.payload.cursors[id], before)
  await prompt(page, id, 'second')
  await page.next('prompt.completed', from)
  await agree(page, id)
  assert.deepEqual(
    page.session(id).bubbles.map(bubble => (bubble.who === 'tool' ? bubble.output : bubble.text)),
    ['first', 'one', 'second', 'two']
  )
})

test('a server killed in the middle of a step, and one killed while an approval waits: the page is told how the turn ended', async t => {
  const where = await place(t, [
    [{ text: 'so far' }, { hang: true }],
    [{ tool: { name: 'Bash', args: { command: 'echo hi' } } }],
    [{ text: 'fine' }]
  ])
  let server = await serve(t, where.home, '--port', '0')
  const page = await Page.open(t, server, { judge: await frameJudge(server) })
  const id = await newSession(page, where.cwd)
  await page.openSession(id)
  for (const moment of ['assistant.delta', 'event.approval.requested']) {
    const from = page.frames.length
    await prompt(page, id, moment)
    await page.next(moment, from)
    const { epoch } = page.session(id)
    server.child.kill('SIGKILL')
    await server.ended
    server = await serve(t, where.home, '--port', '0')
    const back = page.frames.length
    await page.reconnect(server)
    const ended = await page.next('turn.ended', back)
    assert.equal(ended.payload.reason, 'cancelled')
    await page.next('prompt.aborted', back)
    assert.equal(page.session(id).epoch, epoch)
    assert.equal(page.session(id).approvals.size, 0, 'no card stays')
    assert.equal(page.session(id).work.busy, false)
    assert.equal(page.session(id).work.pending_interaction, 'none')
    await agree(page, id)
  }
  const from = page.frames.length
  await prompt(page, id, 'still there?')
  await page.next('prompt.completed', from)
  await agree(page, id)
})
