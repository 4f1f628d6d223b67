/** One model request: consumes the stream, announces the pieces, returns what came. Never rejects for a model failure. */
import type { WirePart } from '../history/index.ts'
import type { FinishReason, LlmError, LlmPart, LlmRequest, LlmToolCall, TokenUsage } from '../llm/index.ts'
import type { AgentEmit } from './contract.ts'

export interface StepPorts {
  stream(request: LlmRequest, signal: AbortSignal): AsyncIterable<LlmPart>
  emit: AgentEmit
  /** An id that no other call of the agent has. */
  uniqueCallId(id: string): string
}

export type StepOutcome =
  | {
      readonly kind: 'response'
      readonly content: readonly WirePart[]
      readonly calls: readonly LlmToolCall[]
      readonly finish: { readonly reason: FinishReason; readonly raw?: string }
      readonly usage?: TokenUsage
      readonly timing: { readonly first_token_ms?: number; readonly stream_ms?: number }
    }
  /** `begun`: something was already announced. `content`: what had been received, as of an aborted one. */
  | { readonly kind: 'error'; readonly error: LlmError; readonly begun: boolean; readonly content: readonly WirePart[] }
  /** What had been received; half-received tool calls are dropped. */
  | { readonly kind: 'aborted'; readonly content: readonly WirePart[] }

interface GrowingPart {
  readonly type: 'text' | 'thinking'
  text?: string
  thinking?: string
  signature?: string
  readonly [field: string]: unknown
}

/** `ready`: the begin of the step is on record and announced; the request is sent before, and nothing is told until then. Its failure rejects. */
export async function runStep(
  ports: StepPorts,
  request: LlmRequest,
  turnId: number,
  signal: AbortSignal,
  ready: Promise<void>
): Promise<StepOutcome> {
  const content: GrowingPart[] = []
  const calls = new Map<string, LlmToolCall & { arguments: string }>()
  /** A call stands behind the last part: what is said next is another part. */
  let called = false
  const deltas = new DeltaGroups(({ name, toolCallId }, text) => {
    if (name === 'toolCallDelta') ports.emit(name, { turnId, toolCallId, argumentsPart: text })
    else ports.emit(name, { turnId, delta: text })
  })
  const asked = performance.now()
  let told = false
  let first: number | undefined
  let usage: TokenUsage | undefined
  let finish: Extract<LlmPart, { type: 'finish' }> | undefined

  const received = () => content.filter(part => (part.text ?? part.thinking ?? '') !== '' || part.signature !== undefined)
  const failed = (error: LlmError): StepOutcome => {
    deltas.flush()
    return { kind: 'error', error, begun: content.length + calls.size > 0, content: received() }
  }
  const grow = (kind: 'text' | 'thinking', text: string) => {
    let part = content.at(-1)
    // A signature seals its part: providers check it against exactly this text.
    if (part?.type !== kind || part.signature !== undefined || called) {
      called = false
      part = kind === 'text' ? { type: kind, text: '' } : { type: kind, thinking: '' }
      content.push(part)
    }
    if (text === '') return part
    part[kind] = (part[kind] ?? '') + text
    deltas.push({ name: kind === 'text' ? 'assistantDelta' : 'thinkingDelta' }, text)
    return part
  }

  try {
    for await (const part of ports.stream(request, signal)) {
      if (!told) await ready
      told = true
      if (signal.aborted) break
      if (first === undefined && part.type !== 'usage') first = performance.now()
      switch (part.type) {
        case 'text':
        case 'thinking': {
          if (part.text === '' && part.signature === undefined) break
          const target = grow(part.type, part.text)
          if (part.signature !== undefined) target.signature = part.signature
          break
        }
        case 'tool_call': {
          const { name, extras } = part
          const call = { id: ports.uniqueCallId(part.id), name, arguments: '', ...(extras && { extras }), after: content.length }
          calls.set(part.id, call)
          called = true
          deltas.flush()
          ports.emit('toolCallDelta', { turnId, toolCallId: call.id, name: call.name, argumentsPart: '' })
          break
        }
        case 'tool_arguments': {
          const call = calls.get(part.id)
          if (!call || part.text === '') break
          call.arguments += part.text
          deltas.push({ name: 'toolCallDelta', toolCallId: call.id }, part.text)
          break
        }
        case 'usage':
          usage = part.usage
          break
        case 'finish':
          finish = part
          break
        case 'error':
          return failed(part.error)
      }
    }
    await ready
    deltas.flush()
  } finally {
    deltas.drop()
  }
  if (signal.aborted) return { kind: 'aborted', content: received() }
  if (!finish) {
    return failed({ code: 'internal', name: 'StreamEndError', message: 'the model stream ended without a finish', retryable: true })
  }
  const end = performance.now()
  return {
    kind: 'response',
    content: received(),
    // Where all calls come last, as mostly, their place goes without saying.
    calls: [...calls.values()].map(({ after, ...call }) => (after === content.length ? call : { ...call, after })),
    finish: { reason: finish.reason, ...(finish.raw_reason === undefined ? {} : { raw: finish.raw_reason }) },
    ...(usage ? { usage } : {}),
    timing: first === undefined ? {} : { first_token_ms: round(first - asked), stream_ms: round(end - first) }
  }
}

/** Chunks that come within this time after one that was told are told together. */
const groupMs = 20

/** What grows: a text, or the arguments of a call. */
type Growing =
  | { readonly name: 'assistantDelta' | 'thinkingDelta'; readonly toolCallId?: never }
  | { readonly name: 'toolCallDelta'; readonly toolCallId: string }

/** Tells the first chunk at once and groups those that follow fast; the order of everything told stays that of the stream. */
class DeltaGroups {
  readonly #tell: (of: Growing, text: string) => void
  #of: Growing | undefined
  #text = ''
  #timer: NodeJS.Timeout | undefined

  constructor(tell: (of: Growing, text: string) => void) {
    this.#tell = tell
  }

  push(of: Growing, text: string): void {
    if (this.#of?.name !== of.name || this.#of.toolCallId !== of.toolCallId) this.flush()
    this.#of = of
    this.#text += text
    if (!this.#timer) this.#send()
  }

  /** Tells what waits, now. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const of = this.#of
    const text = this.#text
    this.#of = undefined
    this.#text = ''
    if (of && text !== '') this.#tell(of, text)
  }

  /** What waits is void. */
  drop(): void {
    this.#text = ''
    this.flush()
  }

  #send(): void {
    const text = this.#text
    this.#text = ''
    this.#timer = undefined
    if (text === '' || !this.#of) return
    this.#timer = setTimeout(() => this.#send(), groupMs)
    this.#tell(this.#of, text)
  }
}

const round = (ms: number): number => Math.round(ms * 10) / 10
