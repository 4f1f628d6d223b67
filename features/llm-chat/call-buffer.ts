/** Tool calls while they stream: several side by side, each held back until its id and name are known. */
import type { LlmPart } from '../llm/index.ts'

export interface CallDelta {
  readonly index?: number | null
  readonly id?: string | null
  readonly function?: { readonly name?: string | null; readonly arguments?: unknown } | null
}

interface Call {
  id: string
  name: string
  /** Argument text that waits for id and name. */
  held: string
  begun: boolean
}

export class CallBuffer {
  readonly #newId: () => string
  readonly #byIndex = new Map<number, Call>()
  readonly #calls: Call[] = []

  constructor(newId: () => string) {
    this.#newId = newId
  }

  /** Calls that were passed on. */
  get begun(): number {
    return this.#calls.filter(call => call.begun).length
  }

  feed(delta: CallDelta, parts: LlmPart[]): void {
    const call = this.#find(delta)
    const name = delta.function?.name
    if (call.id === '' && delta.id) call.id = delta.id
    if (call.name === '' && name) call.name = name
    const text = argumentText(delta.function?.arguments)
    if (call.begun) {
      if (text !== '') parts.push({ type: 'tool_arguments', id: call.id, text })
      return
    }
    call.held += text
    if (call.id !== '' && call.name !== '') begin(call, parts)
  }

  /** Passes on what still waits for an id. A call without a name cannot be called and is dropped. */
  flush(parts: LlmPart[]): void {
    for (const call of this.#calls) {
      if (call.begun || call.name === '') continue
      call.id ||= this.#newId()
      begin(call, parts)
    }
  }

  #find({ index, id, function: fn }: CallDelta): Call {
    const last = this.#calls.at(-1)
    const known = typeof index === 'number' ? this.#byIndex.get(index) : last
    // Some upstreams number every parallel call 0, or not at all: another id together with a name begins another call.
    const another = known !== undefined && id && fn?.name && known.id !== '' && known.id !== id
    if (known && !another) return known
    const call: Call = { id: '', name: '', held: '', begun: false }
    this.#calls.push(call)
    if (typeof index === 'number') this.#byIndex.set(index, call)
    return call
  }
}

function begin(call: Call, parts: LlmPart[]): void {
  call.begun = true
  parts.push({ type: 'tool_call', id: call.id, name: call.name })
  if (call.held !== '') parts.push({ type: 'tool_arguments', id: call.id, text: call.held })
  call.held = ''
}

function argumentText(value: unknown): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : JSON.stringify(value)
}
