/** The helpers for tests tell what is wrong: waits end, leaks are found, what is opened once is none. */
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import { test } from 'node:test'
import { defineEvent, definePack, Type } from '../../kernel/index.ts'
import { assertLeavesNothing, startTestKernel } from '../../kernel/testing.ts'

const teaServed = defineEvent({ type: 'event.tea.served', scope: 'global', durable: true, payload: Type.Object({ cups: Type.Integer() }) })
const tea = definePack({ name: 'tea', setup: ctx => ctx.tap(ctx.hooks.started, async () => ctx.event(teaServed)({ cups: 2 })) })

test('a wait for an event or a frame ends in time and says what came instead', async t => {
  const { waitFor, connect } = await startTestKernel(t, { packs: [tea] })
  assert.equal((await waitFor(teaServed)).payload.cups, 2)
  await assert.rejects(
    waitFor(event => event.type === 'event.coffee.served', { limitMs: 10 }),
    /within 10 ms; what came last: event\.tea\.served$/
  )
  const socket = await connect()
  await assert.rejects(socket.next('coffee', { limitMs: 10 }), /^Error: no frame coffee came within 10 ms; what came last: .*server_hello/)
})

test('what the first run of an act opens and keeps is no leak; what each run leaves is', async t => {
  let kept: Server | undefined
  await assertLeavesNothing(() => {
    kept ??= createServer().listen(0)
  })
  kept?.close()
  const left: Server[] = []
  t.after(() => left.forEach(server => void server.close()))
  await assert.rejects(
    assertLeavesNothing(() => left.push(createServer().listen(0))),
    { name: 'AssertionError' }
  )
})

test('a kernel that starts and stops leaves nothing, without a run before', async () => {
  await assertLeavesNothing(async () => {
    const ends: (() => unknown)[] = []
    const { connect } = await startTestKernel({ after: end => ends.push(end) }, { packs: [tea] })
    await connect()
    for (const end of ends) await end()
  })
})
