/** What must hold after a crash and a restart, told as a list of complaints. */

import { type Frame, type RestClient, SocketClient } from '../../kernel/testing.ts'
import type { Ledger, SessionNote } from './crash-client.ts'
import { orderFaults } from './event-order.ts'

/** Facts that need no session to be open. */
export async function judgeHome(rest: RestClient, ledger: Ledger): Promise<string[]> {
  const complaints: string[] = []
  const workspaces = ids(await data(rest, '/api/v1/workspaces'))
  for (const id of ledger.workspaces) if (!workspaces.includes(id)) complaints.push(`workspace ${id} is gone`)
  const config = (await data(rest, '/api/v1/config')) as { loop_control?: { maxStepsPerTurn?: number } }
  const steps = config.loop_control?.maxStepsPerTurn
  if (steps !== ledger.steps && !ledger.hoped.has(steps ?? -1)) complaints.push(`the setting is ${steps}, not ${ledger.steps}`)
  if (steps !== undefined) ledger.steps = steps
  ledger.hoped.clear()
  for (const note of ledger.sessions.values()) {
    const { title } = (await data(rest, `/api/v1/sessions/${note.id}`)) as { title: string }
    if (title !== note.title) complaints.push(`title of ${note.id} is ${title}`)
  }
  const listed = ids(await data(rest, '/api/v1/sessions?page_size=100'))
  if (listed.length !== Math.min(100, ledger.sessions.size + extra(ledger, listed))) complaints.push('the list of sessions is short')
  return complaints
}

/** Waits until every accepted prompt of a session has ended, then compares messages, queue and the whole journal. */
export async function judgeSession(
  socket: SocketClient,
  url: string,
  token: string,
  rest: RestClient,
  note: SessionNote
): Promise<string[]> {
  const ended = (id: string) => (frame: Frame) => isEnd(frame) && frame.session_id === note.id && frame.payload.promptId === id
  // Prompts can be accepted without that their answer arrived.
  const { active, queued } = await queue(rest, note)
  for (const id of [...note.prompts.keys(), ...[active ?? [], queued].flat().map(prompt => prompt.prompt_id)]) {
    const known = [...note.events.values()].map(text => JSON.parse(text) as Frame)
    // One that joined a turn ends with it, told or not; where it did not, it is in the queue.
    const joined = known.some(({ type, payload }) => type === 'prompt.steered' && payload.promptIds.includes(id))
    const seen = joined || known.some(ended(id))
    if (!seen && !(await within(socket.next(ended(id))))) return [`${note.id}: prompt ${id} never ends`]
  }
  if (!(await atRest(socket, rest, note))) return [`${note.id}: never comes to rest`]
  const events = await journal(url, token, note.id)
  const complaints = [...judgeEvents(events, note), ...orderFaults(events), ...(await judgeMessages(rest, note, events))]
  const left = await queue(rest, note)
  if (left.active !== null || left.queued.length > 0) complaints.push('the queue is not empty')
  return complaints.map(text => `${note.id}: ${text}`)
}

/** Waits until nothing of a session is at work, also in the background. False when that does not come. */
export async function atRest(socket: SocketClient, rest: RestClient, { id, events }: SessionNote): Promise<boolean> {
  for (;;) {
    const seen = Math.max(0, ...events.keys())
    const { busy } = (await data(rest, `/api/v1/sessions/${id}`)) as { busy: boolean }
    const tasks = (await data(rest, `/api/v1/sessions/${id}/tasks?status=running`)) as { items: unknown[] }
    const goal = (await data(rest, `/api/v1/sessions/${id}/goal`)) as { status: string } | null
    const { as_of_seq } = (await data(rest, `/api/v1/sessions/${id}/snapshot`)) as { as_of_seq: number }
    const still = !busy && tasks.items.length === 0 && goal?.status !== 'active'
    if (still && as_of_seq === seen) return true
    if (!(await within(socket.next(frame => frame.session_id === id && !frame.volatile && (frame.seq ?? 0) > seen)))) return still
  }
}

async function queue(rest: RestClient, note: SessionNote) {
  return (await data(rest, `/api/v1/sessions/${note.id}/prompts`)) as { active: Queued | null; queued: Queued[] }
}

interface Queued {
  readonly prompt_id: string
}

/** All durable events of a session, from the first. */
export async function journal(url: string, token: string, session_id: string): Promise<Frame[]> {
  const socket = await SocketClient.open(url, token)
  const ack = await socket.request('subscribe', { session_ids: [session_id], cursors: { [session_id]: { seq: 0 } } })
  await socket.close()
  const end = ack.payload.cursors[session_id].seq as number
  return socket.frames.filter(frame => frame.session_id === session_id && !frame.volatile && (frame.seq ?? 0) <= end)
}

/** Complaints about the whole journal of a session at rest. */
export function judgeEvents(events: readonly Frame[], note: SessionNote): string[] {
  const complaints: string[] = []
  if (events.some((event, at) => event.seq !== at + 1)) complaints.push(`numbers have holes: ${events.map(event => event.seq).join()}`)
  const now = new Map(events.map(event => [event.seq, JSON.stringify(event)]))
  for (const [seq, text] of note.events) if (now.get(seq) !== text) complaints.push(`event ${seq} was ${text}, is ${now.get(seq)}`)
  // A prompt that waited is told again.
  const first = events.filter(
    ({ type, payload }, at) =>
      type !== 'prompt.submitted' || at === events.findIndex(event => event.type === type && event.payload.promptId === payload.promptId)
  )
  const of = (type: string) => first.filter(event => event.type === type)
  type Key = (payload: Frame['payload']) => unknown
  /** `over`: keys of what may have no end. */
  const pair = (first: string, second: string, key: Key, also: readonly string[] = [], over: readonly unknown[] = []) => {
    // Turns and calls are numbered per agent.
    const keyOf = ({ payload }: Frame) => `${payload.agentId ?? 'main'} ${key(payload)}`
    const ended = [second, ...also].flatMap(type => of(type)).map(keyOf)
    const begun = of(first).flatMap(event => (over.includes(key(event.payload)) && !ended.includes(keyOf(event)) ? [] : keyOf(event)))
    if ([...begun].sort().join() !== [...ended].sort().join()) complaints.push(`${first} ${begun.join()} but ${second} ${ended.join()}`)
    if (new Set(begun).size !== begun.length) complaints.push(`${first} repeats: ${begun.join()}`)
  }
  // One that joined a turn ends with it; one whose turn ended before runs as any other.
  const steered = of('prompt.steered').flatMap(event => event.payload.promptIds as string[])
  pair('turn.started', 'turn.ended', ({ turnId }) => turnId)
  pair('prompt.submitted', 'prompt.completed', ({ promptId }) => promptId, ['prompt.aborted'], steered)
  pair('tool.call.started', 'tool.result', ({ toolCallId }) => toolCallId)
  pair('event.approval.requested', 'event.approval.resolved', ({ approval_id }) => approval_id)
  pair('event.question.requested', 'event.question.answered', ({ question_id }) => question_id, ['event.question.dismissed'])
  pair('task.started', 'task.terminated', ({ info }) => info.taskId)
  const compactions = of('compaction.completed').length + of('compaction.cancelled').length
  if (of('compaction.started').length !== compactions)
    complaints.push(`${compactions} ends of ${of('compaction.started').length} compactions`)
  const submitted = of('prompt.submitted').map(event => event.payload.promptId as string)
  const ran = of('turn.started').map(event => event.payload.promptId as string)
  const accepted = [...note.prompts.keys()]
  if (accepted.some(id => !submitted.includes(id))) complaints.push('an accepted prompt was never submitted')
  const order = ran.filter(id => note.prompts.has(id))
  const turnless = withoutTurn(events)
  const expected = accepted.filter(id => (!steered.includes(id) && !turnless.has(id)) || order.includes(id))
  if (order.join() !== expected.join()) complaints.push(`turns ran as ${order.join()}, accepted as ${expected.join()}`)
  for (const [id, decision] of note.decided) {
    const answers = of('event.approval.resolved').filter(event => event.payload.approval_id === id)
    if (answers[0]?.payload.decision !== decision)
      complaints.push(`approval ${id} is told as ${answers[0]?.payload.decision}, not ${decision}`)
  }
  const answered = of('event.question.answered').map(event => event.payload.question_id as string)
  for (const id of note.answered) if (!answered.includes(id)) complaints.push(`the answer to question ${id} is not told`)
  const begun = of('task.started').map(event => event.payload.info.taskId as string)
  for (const id of note.detached) if (!begun.includes(id)) complaints.push(`the task ${id} was detached, and is not told`)
  for (const { payload } of of('tool.result'))
    if (payload.synthetic && !(payload.isError && /interrupted|aborted|cancelled/i.test(JSON.stringify(payload.output))))
      complaints.push(`the call ${payload.toolCallId} was cut, and ended as ${JSON.stringify(payload.output)}`)
  const last = of('event.session.work_changed').at(-1)?.payload
  if (last && (last.busy || last.pending_interaction !== 'none')) complaints.push(`the last work_changed says ${JSON.stringify(last)}`)
  const status = of('event.session.status_changed').at(-1)?.payload.status
  if (status !== undefined && !['idle', 'aborted'].includes(status)) complaints.push(`the last status_changed says ${status}`)
  return complaints
}

/** Prompts about which hooks were asked: those that one blocked, and those that were aborted meanwhile (`aborted`: only these). */
function withoutTurn(events: readonly Frame[], aborted = false): ReadonlySet<string> {
  const ran = new Set(events.flatMap(({ type, payload }) => (type === 'turn.started' ? payload.promptId : [])))
  const ended = events.filter(({ type, payload }) => type === 'prompt.aborted' || (!aborted && payload.reason === 'blocked'))
  return new Set(ended.flatMap(({ payload }) => (ran.has(payload.promptId) ? [] : payload.promptId)))
}

async function judgeMessages(rest: RestClient, note: SessionNote, events: readonly Frame[]): Promise<string[]> {
  const complaints: string[] = []
  const { items } = (await data(rest, `/api/v1/sessions/${note.id}/messages?page_size=100`)) as { items: Message[] }
  const messages = items.reverse()
  const user = messages.filter(message => note.prompts.has(message.prompt_id ?? '') && message.role === 'user')
  const there = new Set(user.map(message => message.prompt_id))
  for (const [id, how] of note.undone) {
    if (how === 'done' && there.has(id)) complaints.push(`the prompt ${id} was taken back, and is there`)
    // Whether it was taken back shows now; from here on it stays so.
    if (there.has(id)) note.undone.delete(id)
    else note.undone.set(id, 'done')
  }
  const withdrawn = withoutTurn(events, true)
  const steered = new Set(events.flatMap(({ type, payload }) => (type === 'prompt.steered' ? (payload.promptIds as string[]) : [])))
  // Those that joined a running turn overtake what waits; the others keep their order.
  const lined = (prompts: readonly (readonly [string, string | undefined])[]) =>
    [...prompts.filter(([id]) => !steered.has(id)), ...prompts.filter(([id]) => steered.has(id)).sort()].map(([, text]) => text).join()
  const texts = lined(user.map(({ prompt_id = '', content }) => [prompt_id, content[0]?.text]))
  const expected = lined([...note.prompts].filter(([id]) => !note.undone.has(id) && !withdrawn.has(id)))
  if (texts !== expected) complaints.push(`prompts in the history: ${texts}; accepted: ${expected}`)
  const parts = messages.flatMap(message => message.content)
  const calls = parts.filter(part => part.type === 'tool_use').map(part => part.tool_call_id)
  const results = parts.filter(part => part.type === 'tool_result').map(part => part.tool_call_id)
  if ([...calls].sort().join() !== [...results].sort().join()) complaints.push(`calls ${calls.join()} but results ${results.join()}`)
  return complaints
}

interface Message {
  readonly role: string
  readonly prompt_id?: string
  readonly content: readonly { readonly type: string; readonly text?: string; readonly tool_call_id?: string }[]
}

const isEnd = (frame: Frame) => frame.type === 'prompt.completed' || frame.type === 'prompt.aborted'

/** Sessions that exist though their creation was never answered. */
function extra(ledger: Ledger, listed: readonly string[]): number {
  return listed.filter(id => !ledger.sessions.has(id)).length
}

const ids = (page: unknown) => (page as { items: { id: string }[] }).items.map(item => item.id)

async function data(rest: RestClient, path: string): Promise<unknown> {
  const answer = await rest.json('GET', path)
  if (answer.code !== 0) throw new Error(`GET ${path}: ${answer.code} ${answer.msg}`)
  return answer.data
}

/** False when nothing came for long. */
async function within(wait: Promise<unknown>): Promise<boolean> {
  const limit = new Promise<boolean>(resolve => setTimeout(resolve, 20_000, false).unref())
  return await Promise.race([wait.then(() => true), limit])
}
