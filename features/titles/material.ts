/** What a title is made of: the user's prompts and the agent's replies, short and without secrets. */
import { headOf, tailOf } from '../../kernel/index.ts'
import { type History, type HistoryRecord, isMessage, isUserInput, type Origin, type WirePart } from '../history/index.ts'
import { lastPromptOf } from '../sessions/index.ts'
import type { TitleSource } from './contract.ts'

/** A turn of the user, as far as a title needs it. */
interface Turn {
  /** Number of its prompt's message. */
  readonly number: number
  readonly prompt: string
  reply: string
  ended: boolean
}

const textChars = 400
/** Turns at the beginning, and as many at the end; those between them do not count. */
const turnsKept = 40
const elision = '\n...\n'

/** The text that goes out; undefined when there is nothing to go by yet. */
export async function materialOf(history: History, source: TitleSource, signal: AbortSignal): Promise<string | undefined> {
  const turns = await turnsOf(history, signal)
  if (source === 'first_turn') {
    const [first] = turns
    if (!first?.ended || first.reply === '') return undefined
    return `user: ${first.prompt}\nassistant: ${headOf(first.reply, 300)}`
  }
  if (turns.length === 0) return undefined
  if (source === 'user_prompts') {
    const lines = turns.slice(0, 3).map(({ prompt }) => `user: ${prompt}`)
    return headOf(lines.join('\n'), 1000)
  }
  const lines = turns.flatMap(({ prompt, reply }) => [
    `user: ${headOf(prompt, 200)}`,
    ...(reply === '' ? [] : [`assistant: ${headOf(reply, 200)}`])
  ])
  return withoutMiddle(lines.join('\n'), 3000)
}

function withoutMiddle(text: string, chars: number): string {
  if (text.length <= chars) return text
  const half = Math.floor((chars - elision.length) / 2)
  return headOf(text, half) + elision + tailOf(text, half)
}

/** The first and the last turns of the user that were not taken back. */
async function turnsOf(history: History, signal: AbortSignal): Promise<readonly Turn[]> {
  const reader = new Reader()
  for await (const { value } of history.records({})) {
    signal.throwIfAborted()
    reader.take(value)
  }
  return reader.turns
}

interface Fields {
  readonly number?: number
  readonly content?: readonly WirePart[]
  readonly origin?: Origin
  readonly role?: string
  readonly prompt_id?: string
  readonly blocked?: boolean
  readonly from?: number
}

class Reader {
  turns: Turn[] = []
  /** Prompts that were accepted and are no messages yet. */
  readonly #accepted = new Map<string, readonly WirePart[]>()
  #number = 0

  take(record: HistoryRecord): void {
    const { number, content, origin, role, prompt_id = '', blocked, from } = record as HistoryRecord & Fields
    if (isMessage(record)) this.#number = number ?? this.#number + 1
    const last = this.turns.at(-1)
    if (record.type === 'prompt.accepted' && content) this.#accepted.set(prompt_id, content)
    else if (record.type === 'message' && role === 'user' && isUserInput(origin)) {
      if (!blocked) this.#add(textOf(content ?? this.#accepted.get(prompt_id)))
      this.#accepted.delete(prompt_id)
    } else if (record.type === 'step.message' && last) last.reply = textOf(content) || last.reply
    else if (record.type === 'turn.ended' && last) last.ended = true
    else if (record.type === 'context.undone' && from !== undefined) this.turns = this.turns.filter(turn => turn.number < from)
  }

  #add(prompt: string): void {
    this.turns.push({ number: this.#number, prompt, reply: '', ended: false })
    if (this.turns.length > 2 * turnsKept) this.turns.splice(turnsKept, 1)
  }
}

function textOf(content: readonly WirePart[] = []): string {
  const parts = content.flatMap(part => {
    if (part.type === 'text') return [String(part.text)]
    return ['image', 'video', 'audio'].includes(part.type) ? [`[${part.type}]`] : []
  })
  return headOf(lastPromptOf(parts.join('\n')), textChars)
}
