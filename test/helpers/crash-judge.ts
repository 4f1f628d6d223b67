/** What must hold after a crash and a restart, told as a list of complaints. */
import { type Frame, type RestClient, SocketClient } from '../../kernel/testing.ts'
import type { Ledger, SessionNote } from './crash-client.ts'

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
    const seen = [...note.events.values()].some(text => ended(id)(JSON.parse(text)))
    if (!seen && !(await within(socket.next(ended(id))))) return [`${note.id}: prompt ${id} never ends`]
  }
  const events = await journal(url, token, note.id)
  const complaints = [...judgeEvents(events, note), ...(await judgeMessages(rest, note))]
  const left = await queue(rest, note)
  if (left.active !== null || left.queued.length > 0) complaints.push('the queue is not empty')
  return complaints.map(text => `${note.id}: ${text}`)
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
  const of = (type: string) => events.filter(event => event.type === type)
  const pair = (first: string, second: string, key: string, also: readonly string[] = []) => {
    const begun = of(first).map(event => String(event.payload[key]))
    const ended = [second, ...also].flatMap(type => of(type)).map(event => String(event.payload[key]))
    if ([...begun].sort().join() !== [...ended].sort().join()) complaints.push(`${first} ${begun.join()} but ${second} ${ended.join()}`)
    if (new Set(begun).size !== begun.length) complaints.push(`${first} repeats: ${begun.join()}`)
  }
  pair('turn.started', 'turn.ended', 'turnId')
  pair('prompt.submitted', 'prompt.completed', 'promptId', ['prompt.aborted'])
  pair('tool.call.started', 'tool.result', 'toolCallId')
  pair('event.approval.requested', 'event.approval.resolved', 'approval_id')
  const submitted = of('prompt.submitted').map(event => event.payload.promptId as string)
  const ran = of('turn.started').map(event => event.payload.promptId as string)
  const accepted = [...note.prompts.keys()]
  if (accepted.some(id => !submitted.includes(id))) complaints.push('an accepted prompt was never submitted')
  const order = ran.filter(id => note.prompts.has(id))
  if (order.join() !== accepted.join()) complaints.push(`turns ran as ${order.join()}, accepted as ${accepted.join()}`)
  for (const id of note.approved) {
    const answers = of('event.approval.resolved').filter(event => event.payload.approval_id === id)
    if (answers[0]?.payload.decision !== 'approved') complaints.push(`approval ${id} is told as ${answers[0]?.payload.decision}`)
  }
  const last = of('event.session.work_changed').at(-1)?.payload
  if (last && (last.busy || last.pending_interaction !== 'none')) complaints.push(`the last work_changed says ${JSON.stringify(last)}`)
  return complaints
}

async function judgeMessages(rest: RestClient, note: SessionNote): Promise<string[]> {
  const complaints: string[] = []
  const { items } = (await data(rest, `/api/v1/sessions/${note.id}/messages?page_size=100`)) as { items: Message[] }
  const messages = items.reverse()
  const user = messages.filter(message => note.prompts.has(message.prompt_id ?? '') && message.role === 'user')
  const texts = user.map(message => message.content[0]?.text).join()
  if (texts !== [...note.prompts.values()].join()) complaints.push(`prompts in the history: ${texts}`)
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
  const limit = new Promise<boolean>(resolve => setTimeout(resolve, 8000, false).unref())
  return await Promise.race([wait.then(() => true), limit])
}
