/** The wire form of a conversation that grows: what was encoded for the request before is taken over, so that a step costs what it adds. */
import { CallIds } from './call-ids.ts'
import type { LlmMessage } from './request.ts'
import { sameBeginning } from './written-list.ts'

/** What the form of a message depends on beside the messages in front of it. */
interface WireForm {
  /** Another one: everything is encoded anew. */
  readonly key: string
  /** Indexes of messages from which on another form holds. */
  readonly marks: readonly number[]
}

/** A place where the wire form of what follows depends on nothing in front of it but ids. */
interface Cut {
  readonly at: number
  readonly wire: number
  readonly ids: number
}

interface Known<W> {
  readonly form: WireForm
  readonly messages: readonly LlmMessage[]
  readonly wire: readonly W[]
  readonly cuts: Cut[]
  readonly ids: CallIds
}

/** Of one adapter. Wire items are shared between requests: whoever changes one takes a copy. */
export class GrowingWire<W> {
  /** By the first message: a conversation keeps it. */
  readonly #known = new WeakMap<LlmMessage, Known<W>>()

  /**
   * The wire form of the messages. `encode` gets the messages in shares, each with the index of its first one; a share ends where an
   * answer of the model follows something that was said to it. What `encode` throws goes on to the caller.
   */
  of(
    messages: readonly LlmMessage[],
    form: WireForm,
    encode: (share: readonly LlmMessage[], at: number, ids: CallIds) => readonly W[]
  ): W[] {
    const [first] = messages
    if (!first) return []
    const known = this.#known.get(first)
    this.#known.delete(first) // should this fail half-way
    const same = known ? usable(known, messages, form) : 0
    const cuts = known?.cuts ?? []
    while ((cuts.at(-1)?.at ?? -1) >= same) cuts.pop()
    const cut = cuts.pop() ?? { at: 0, wire: 0, ids: 0 }
    const ids = known?.ids ?? new CallIds()
    ids.rewind(cut.ids)
    const wire = known?.wire.slice(0, cut.wire) ?? []
    for (let at = cut.at; at < messages.length; ) {
      let end = at + 1
      while (end < messages.length && !beginsShare(messages, end)) end++
      cuts.push({ at, wire: wire.length, ids: ids.count })
      wire.push(...encode(messages.slice(at, end), at, ids))
      at = end
    }
    this.#known.set(first, { form, messages, wire, cuts, ids })
    return wire.slice()
  }
}

/** How many messages have the same form as in the request before. */
function usable<W>(known: Known<W>, messages: readonly LlmMessage[], { key, marks }: WireForm): number {
  if (known.form.key !== key) return 0
  const moved = marks.flatMap((mark, at) => {
    const before = known.form.marks[at] ?? 0
    return mark === before ? [] : [Math.min(mark, before)]
  })
  return Math.min(sameBeginning(known.messages, messages), ...moved)
}

/** Wires join neighbours of one role, and put pictures of results behind them: never across an answer and what it answers, if both are sent. */
function beginsShare(messages: readonly LlmMessage[], at: number): boolean {
  const [before, message] = [messages[at - 1], messages[at]]
  return message?.role === 'assistant' && before !== undefined && before.role !== 'assistant' && isSent(message) && isSent(before)
}

/** Every wire has something for it. */
function isSent({ role, content }: LlmMessage): boolean {
  return role === 'tool' || content.some(part => part.type === 'tool_call' || (part.type === 'text' && part.text.trim() !== ''))
}

/** By the first message: the first one with thinking, or -1, of the messages as they were at the last look. */
const thoughts = new WeakMap<LlmMessage, { readonly messages: readonly LlmMessage[]; readonly at: number }>()

/** Whether the model thought in an earlier answer. What was looked at for the request before is not looked at again. */
export function holdsThinking(messages: readonly LlmMessage[]): boolean {
  const [first] = messages
  if (!first) return false
  const known = thoughts.get(first)
  const same = known ? sameBeginning(known.messages, messages) : 0
  const isKnown = known !== undefined && known.at >= 0 && known.at < same
  let at = isKnown ? known.at : same
  while (at < messages.length && !thinks(messages[at]!)) at++
  if (at === messages.length) at = -1
  thoughts.set(first, { messages, at })
  return at >= 0
}

const thinks = ({ role, content }: LlmMessage) => role === 'assistant' && content.some(part => part.type === 'thinking')
