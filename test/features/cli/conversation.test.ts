/** A conversation at the terminal whose connection was cut: how its prompts have ended meanwhile. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Client, createClient, type Snapshot, type WatchOptions } from '../../../client/index.ts'
import { Conversation } from '../../../features/cli/conversation.ts'
import type { Io } from '../../../features/cli/io.ts'

const reply = (status: number, body: object) =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } })
const nobody = { active: null, queued: [] }

/** A conversation that waits for a prompt and is given a snapshot; `answers`: of the server, one after the other. */
function waiting(...answers: readonly (() => Response)[]) {
  const left = [...answers]
  const { rest } = createClient({ url: 'http://127.0.0.1:1', token: 'x', fetch: async () => (left.shift() ?? (() => Response.error()))() })
  let options: WatchOptions | undefined
  const events = {
    onState: () => () => undefined,
    watch(_id: string, given: WatchOptions) {
      options = given
      return { ready: Promise.resolve() }
    }
  }
  const client = { rest, events, close: () => undefined } as unknown as Client
  const io = { out: () => undefined, err: () => undefined, interactive: false } as unknown as Io
  const talk = new Conversation(client, io, { session_id: 'session_a', yes: false, json: false, interrupted: () => undefined })
  const end = talk.open().then(() => {
    const outcome = talk.outcome('prompt_a')
    const session = { id: 'session_a', main_turn_active: false, last_turn_reason: 'completed' }
    const rest = { messages: { items: [], has_more: false }, in_flight_turn: null, pending_approvals: [], pending_questions: [] }
    options?.onSnapshot?.({ session, ...rest } as unknown as Snapshot)
    return outcome
  })
  return { end, close: () => talk.close() }
}

test('a server that is away for a moment when it is asked how prompts ended is asked again', async t => {
  const away = () => {
    throw new TypeError('fetch failed')
  }
  const { end, close } = waiting(
    away,
    () => reply(503, { code: 50007, msg: 'away' }),
    () => reply(200, { code: 0, msg: 'success', data: nobody })
  )
  t.after(close)

  assert.equal((await end).reason, 'completed')
})

test('a session that is gone, or a server that fails, ends the waiting for its prompts', async t => {
  for (const failed of [
    { code: 40401, msg: 'session not found', data: null },
    { code: 50001, msg: 'internal error', data: null }
  ]) {
    const { end, close } = waiting(
      () => reply(200, failed),
      () => reply(200, { code: 0, msg: 'success', data: nobody })
    )
    t.after(close)
    await assert.rejects(end, { message: failed.msg })
  }
})
