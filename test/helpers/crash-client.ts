/** A busy client of a server that may die at any moment. It writes down what it was promised: answers with code 0 and events seen. */
import type { Frame } from '../../kernel/testing.ts'
import { RestClient, SocketClient } from '../../kernel/testing.ts'

export interface SessionNote {
  readonly id: string
  readonly title: string
  /** Accepted prompts by id, in order of acceptance. */
  readonly prompts: Map<string, string>
  /** Decisions that were accepted, by approval id. */
  readonly decided: Map<string, 'approved' | 'rejected'>
  /** Questions whose answer was accepted. */
  readonly answered: Set<string>
  /** Calls that were moved to the background, and the server said so. */
  readonly detached: Set<string>
  /** Prompts that were taken back: for sure, or perhaps, because the answer never came. */
  readonly undone: Map<string, 'done' | 'perhaps'>
  /** Durable events as they came, by number. */
  readonly events: Map<number, string>
  epoch: string
}

export interface Ledger {
  readonly workspaces: Set<string>
  readonly sessions: Map<string, SessionNote>
  /** Last accepted value of the setting, and those asked for since whose answer never came. */
  steps: number | undefined
  readonly hoped: Set<number>
}

export const newNote = (id: string, title: string): SessionNote => ({
  id,
  title,
  prompts: new Map(),
  decided: new Map(),
  answered: new Set(),
  detached: new Set(),
  undone: new Map(),
  events: new Map(),
  epoch: ''
})

export const newLedger = (): Ledger => ({ workspaces: new Set(), sessions: new Map(), steps: undefined, hoped: new Set() })

export class CrashClient {
  readonly rest: RestClient
  /** Answers to what a session asked that did not get there, or were refused: a session that waits for ever may wait for one of them. */
  readonly unheard: string[] = []
  readonly #ledger: Ledger
  readonly #random: () => number
  #socket: SocketClient | undefined

  /** `random`: by which it decides what it is asked; default: it approves, and chooses the first option. */
  constructor(url: string, token: string, ledger: Ledger, random: () => number = () => 1) {
    this.rest = new RestClient(url, token)
    this.#ledger = ledger
    this.#random = random
  }

  /** Says hello for these sessions with their cursors and notes every event from there on. */
  async connect(url: string, token: string, notes: Iterable<SessionNote>): Promise<SocketClient> {
    const socket = await SocketClient.open(url, token)
    this.#socket = socket
    socket.ws.on('message', data => this.#note(String(data)))
    const known = [...notes]
    const cursors = Object.fromEntries(
      known.map(({ id, events, epoch }) => [id, { seq: Math.max(0, ...events.keys()), ...(epoch === '' ? {} : { epoch }) }])
    )
    const ack = await socket.request('client_hello', { client_id: 'crash', subscriptions: known.map(note => note.id), cursors })
    // A replay that holds an undo, or the end of a step that a dead process took with it, ends in another conversation.
    const isOther = ({ id, events }: SessionNote) =>
      [...events].some(([seq, text]) => seq > (cursors[id]?.seq ?? 0) && /"context\.undone"|"lost":true/.test(text))
    const expected = new Set(known.filter(isOther).map(note => note.id))
    const { not_found, resync_required } = ack.payload as { not_found: string[]; resync_required: string[] }
    if (not_found.length > 0 || resync_required.some(id => !expected.has(id))) throw new Error(`lost: ${JSON.stringify(ack.payload)}`)
    return socket
  }

  async workspace(root: string): Promise<void> {
    const { id } = await this.#data('POST', '/api/v1/workspaces', { root })
    this.#ledger.workspaces.add(id)
  }

  async setting(value: number): Promise<void> {
    this.#ledger.hoped.add(value)
    await this.#data('POST', '/api/v1/config', { loop_control: { max_steps_per_turn: value } })
    this.#ledger.steps = value
    this.#ledger.hoped.clear()
  }

  async session(cwd: string, title: string): Promise<SessionNote> {
    const { id } = await this.#data('POST', '/api/v1/sessions', { metadata: { cwd }, title })
    const note = newNote(id, title)
    this.#ledger.sessions.set(id, note)
    await this.#socket?.request('subscribe', { session_ids: [id], cursors: { [id]: { seq: 0 } } })
    return note
  }

  /** Answers the id. */
  async prompt(note: SessionNote, text: string, more: object = {}, media: readonly object[] = []): Promise<string> {
    const content = [{ type: 'text', text }, ...media]
    const { prompt_id } = await this.#data('POST', `/api/v1/sessions/${note.id}/prompts`, { content, ...more })
    note.prompts.set(prompt_id, text)
    return prompt_id
  }

  /** Answers the id of the file. */
  async upload(name: string, media_type: string, bytes: Buffer): Promise<string> {
    const head = `--cut\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\ncontent-type: ${media_type}\r\n\r\n`
    const body = Buffer.concat([Buffer.from(head), bytes, Buffer.from('\r\n--cut--\r\n')])
    const headers = { 'content-type': 'multipart/form-data; boundary=cut' }
    const answer = await this.rest.raw('POST', '/api/v1/files', { headers, body })
    return (JSON.parse(answer.body.toString()) as { data: { id: string } }).data.id
  }

  /** What a person does with a command that takes too long: those whose prompt says so are moved to the background or cancelled. */
  async #hurry(note: SessionNote, call: string, action: 'detach' | 'cancel'): Promise<void> {
    const { items } = await this.#data('GET', `/api/v1/sessions/${note.id}/tasks?status=running`, undefined)
    const task = (items as readonly { id: string; parent_tool_call_id?: string }[]).find(each => each.parent_tool_call_id === call)
    if (!task) return
    const { detached } = await this.#data('POST', `/api/v1/sessions/${note.id}/tasks/${task.id}:${action}`, {})
    if (detached) note.detached.add(task.id)
  }

  /** Into the running turn, if it still runs. */
  async steer(note: SessionNote, prompt_id: string): Promise<void> {
    await this.#data('POST', `/api/v1/sessions/${note.id}/prompts/${prompt_id}:steer`, {})
  }

  /** Takes back the newest turn, which this prompt began. */
  async undo(note: SessionNote, prompt_id: string): Promise<void> {
    note.undone.set(prompt_id, 'perhaps')
    try {
      await this.#data('POST', `/api/v1/sessions/${note.id}:undo`, { count: 1 })
      note.undone.set(prompt_id, 'done')
    } catch (error) {
      if (error instanceof Refused) note.undone.delete(prompt_id)
      throw error
    }
  }

  async compact(note: SessionNote): Promise<void> {
    await this.#data('POST', `/api/v1/sessions/${note.id}:compact`, {})
  }

  async abort(note: SessionNote): Promise<void> {
    await this.#data('POST', `/api/v1/sessions/${note.id}:abort`, {})
  }

  async #decide(note: SessionNote, id: string): Promise<void> {
    const decision = this.#random() < 0.1 ? 'rejected' : 'approved'
    await this.#data('POST', `/api/v1/sessions/${note.id}/approvals/${id}`, { decision })
    note.decided.set(id, decision)
  }

  async #answer(note: SessionNote, id: string): Promise<void> {
    const answers = { q_0: { kind: 'single', option_id: 'opt_0_0' } }
    await this.#data('POST', `/api/v1/sessions/${note.id}/questions/${id}`, { answers })
    note.answered.add(id)
  }

  // biome-ignore lint/suspicious/noExplicitAny: answers of many routes
  async #data(method: string, path: string, body: unknown): Promise<any> {
    const answer = await this.rest.json(method, path, body)
    if (answer.code !== 0) throw new Refused(`${method} ${path}: ${answer.code} ${answer.msg}`)
    return answer.data
  }

  #note(text: string): void {
    const frame = JSON.parse(text) as Frame
    const note = this.#ledger.sessions.get(frame.session_id ?? '')
    if (!note || frame.seq === undefined || frame.volatile) return
    const known = note.events.get(frame.seq)
    if (known !== undefined && known !== text) throw new Error(`number ${frame.seq} of ${note.id} came with other content`)
    if (note.epoch !== '' && note.epoch !== frame.epoch) throw new Error(`the epoch of ${note.id} changed`)
    note.epoch = frame.epoch ?? ''
    note.events.set(frame.seq, text)
    if (frame.type === 'event.approval.requested') this.#surely(() => this.#decide(note, frame.payload.approval_id))
    if (frame.type === 'event.question.requested') this.#surely(() => this.#answer(note, frame.payload.question_id))
    const hurry = frame.type === 'tool.call.started' && /^(detach|cancel)\w*-0$/.exec(frame.payload.toolCallId)?.[1]
    if (hurry) this.#surely(() => this.#hurry(note, frame.payload.toolCallId, hurry as 'detach' | 'cancel'))
  }

  /** A connection that was kept may end at the moment when it is used again: that is no death yet. */
  #surely(action: () => Promise<void>): void {
    action()
      .catch(error => {
        if (error instanceof Refused) throw error
        return action()
      })
      .catch(error => {
        this.unheard.push(String(error))
        ignoreDeath(error)
      })
  }
}

/** An answer with another code than 0: the server lives, so it is a finding. */
export class Refused extends Error {}

/** For requests that a dying server leaves unanswered. An approval of a turn that a crash ended is gone, too. */
export function ignoreDeath(error: unknown): void {
  if (error instanceof Refused && !/4040[2456]|4090[24]|4100[12]/.test(error.message)) throw error
}
