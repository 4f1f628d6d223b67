/** What was found out about the requests of a turn, and is kept until it ends. */
import { type LlmError, type LlmRequest, thinkingFrom } from '../llm/index.ts'
import { causesOf } from './causes.ts'
import { countMedia, dropMedia } from './forms.ts'

const RECENT_MEDIA = 2

/** Of one agent; a new turn begins without any. */
export class Repairs {
  #turn_id = -1
  /** The request of the last step, before it was changed. */
  #asked: LlmRequest | undefined
  /** Media from the oldest on that are left out for good. */
  #dropped = 0
  /** Of the others only the most recent go out. */
  #recentOnly = false
  /** Thinking that still goes back; `none` also asks for none. */
  #thinking: LlmRequest['replayed_thinking']

  /** The request in the form that this turn has found to be needed; undefined: as it is. */
  apply(turn_id: number, request: LlmRequest): LlmRequest | undefined {
    if (turn_id !== this.#turn_id) this.#begin(turn_id)
    this.#asked = request // looked through when it is refused: mostly nobody has to
    const dropped = this.#recentOnly ? Math.max(this.#dropped, this.#sent() - RECENT_MEDIA) : this.#dropped
    const messages = dropMedia(request.messages, dropped)
    const form = this.#thinking === undefined ? request : withThinking(request, this.#thinking)
    if (messages !== request.messages) return { ...form, messages }
    return form === request ? undefined : form
  }

  /** What is tried next, in words for the log; undefined: nothing is left that would help. */
  learn(error: LlmError): string | undefined {
    for (const cause of causesOf(error)) {
      const media = cause === 'media' ? this.#fewerMedia() : undefined
      if (media !== undefined) return media
      if ((cause === 'thinking' || cause === 'reasoning') && this.#thinking !== 'none') {
        this.#thinking = this.#thinking === undefined && this.#heldEarlierThinking() ? 'turn' : 'none'
        return this.#thinking === 'turn' ? 'no thinking of earlier turns' : 'no thinking'
      }
    }
    return undefined
  }

  /** In words; undefined: there are none left to leave out. */
  #fewerMedia(): string | undefined {
    const sent = this.#sent()
    if (!this.#recentOnly && sent > RECENT_MEDIA) {
      this.#recentOnly = true
      return 'only recent media'
    }
    if (this.#dropped >= sent) return undefined
    this.#dropped = sent
    return 'no media'
  }

  /** Media in the request. */
  #sent(): number {
    return countMedia(this.#asked?.messages ?? [])
  }

  /** The request held thinking of earlier turns. */
  #heldEarlierThinking(): boolean {
    const request = this.#asked
    if (!request) return false
    const earlier = request.messages.slice(thinkingFrom(request), thinkingFrom({ ...request, replayed_thinking: 'turn' }))
    return earlier.some(({ content }) => content.some(({ type }) => type === 'thinking'))
  }

  #begin(turn_id: number): void {
    this.#turn_id = turn_id
    this.#dropped = 0
    this.#recentOnly = false
    this.#thinking = undefined
  }
}

/** A model that is asked to think wants its thoughts of this turn back: without them it must not be asked. */
function withThinking(request: LlmRequest, replayed_thinking: 'turn' | 'none'): LlmRequest {
  return { ...request, replayed_thinking, ...(replayed_thinking === 'none' && { effort: 'off' }) }
}
