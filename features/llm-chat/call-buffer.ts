/** Tool calls while they stream: several side by side, each held back until its id and name are known. */
import { type LlmPart, parseJson, ResponseIds, recordOf, stringOf } from '../llm/index.ts'
import { writeExtra } from './replay-data.ts'

interface Call {
  /** As the upstream gives it; may be empty. */
  given: string
  /** Id under which it was passed on; empty before. */
  id: string
  name: string
  /** All argument text so far. */
  text: string
  /** Its first and its last character that is no blank. */
  edges: string
  /** What must go back with the call. */
  extra: unknown
}

/** The calls of one response. */
export class CallBuffer {
  readonly #model: string
  readonly #ids: ResponseIds
  readonly #byIndex = new Map<number, Call>()
  readonly #calls: Call[] = []

  /** `model`: upstream name; what belongs to a call goes back to it alone. */
  constructor(model: string, newId: () => string) {
    this.#model = model
    this.#ids = new ResponseIds(newId)
  }

  /** Calls that were passed on. */
  get begun(): number {
    return this.#ids.count
  }

  /** One entry of `delta.tool_calls`, of whatever shape. */
  feed(delta: unknown, parts: LlmPart[]): void {
    const { index, id, function: fn, extra_content } = recordOf(delta)
    const { name, arguments: args } = recordOf(fn)
    const piece = { id: stringOf(id), name: stringOf(name), text: argumentText(args) }
    const call = this.#find(index, piece)
    call.given ||= piece.id
    call.name ||= piece.name
    call.text += piece.text
    const shown = piece.text.trim()
    if (shown !== '') call.edges = (call.edges[0] ?? shown[0]!) + shown.at(-1)
    call.extra ??= extra_content
    if (call.id !== '') {
      if (piece.text !== '') parts.push({ type: 'tool_arguments', id: call.id, text: piece.text })
    } else if (call.given !== '' && call.name !== '') this.#begin(call, parts)
  }

  /** Passes on what still waits for an id. A call without a name cannot be called and is dropped. */
  flush(parts: LlmPart[]): void {
    for (const call of this.#calls) if (call.id === '' && call.name !== '') this.#begin(call, parts)
  }

  #find(index: unknown, piece: Piece): Call {
    const known = typeof index === 'number' ? this.#byIndex.get(index) : this.#calls.at(-1)
    if (known && !beginsAnother(known, piece)) return known
    const call: Call = { given: '', id: '', name: '', text: '', edges: '', extra: undefined }
    this.#calls.push(call)
    if (typeof index === 'number') this.#byIndex.set(index, call)
    return call
  }

  #begin(call: Call, parts: LlmPart[]): void {
    call.id = this.#ids.take(call.given)
    const extras = writeExtra(this.#model, call.extra)
    parts.push({ type: 'tool_call', id: call.id, name: call.name, ...(extras && { extras }) })
    if (call.text !== '') parts.push({ type: 'tool_arguments', id: call.id, text: call.text })
  }
}

interface Piece {
  readonly id: string
  readonly name: string
  readonly text: string
}

/**
 * Some upstreams number every parallel call 0, or not at all, and some give no ids or another one with every piece. Then a name begins
 * another call, unless the arguments of the last one are still open.
 */
function beginsAnother(known: Call, { id, name, text }: Piece): boolean {
  if (name === '' || known.name === '') return false
  if (id !== '' && (known.given === '' || known.given === id)) return false
  if (name !== known.name) return true
  return id === '' ? text !== '' && known.text !== '' && !isOpen(known) : !isOpen(known)
}

/** More of the arguments must follow. An object that lacks its last brace is not read for that: some upstreams ask with every piece. */
function isOpen({ text, edges }: Call): boolean {
  return (edges.startsWith('{') && !edges.endsWith('}')) || (text !== '' && parseJson(text) === undefined)
}

function argumentText(value: unknown): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : JSON.stringify(value)
}
