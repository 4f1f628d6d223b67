/** A model that says what a test wants: no network, no key. It is chosen like any other, by the alias `scripted`. */
import {
  type LlmAdapter,
  LlmAdapters,
  type LlmError,
  LlmModels,
  type LlmPart,
  type LlmRequest,
  type TokenUsage
} from '../features/llm/index.ts'
import { definePack, type Pack } from '../kernel/index.ts'

/**
 * What the model answers: a text, the parts of an answer (`toolCalls`, `modelFailure`, or written down; `wait` among them holds it up), or what
 * follows from the request.
 */
export type Reply =
  | string
  | readonly (LlmPart | { readonly type: 'wait'; readonly until: Promise<unknown> })[]
  | ((request: LlmRequest) => Reply)

/** Requests as they come, and their answers. */
export interface ReplyScript {
  /** In order. Grows while the test runs. */
  readonly requests: LlmRequest[]
  /** Resolves when request n (from 0) has arrived. */
  arrived(n: number): Promise<LlmRequest>
  readonly stream: LlmAdapter['stream']
}

export interface ScriptedModel extends ReplyScript {
  /** Its pack, for `startTestKernel`; `startTestServer` takes the model itself. */
  readonly pack: Pack
}

/** Answers request n with reply n; the last reply repeats. Without any: `ok`. */
export function replyScript(...replies: readonly Reply[]): ReplyScript {
  const requests: LlmRequest[] = []
  const waiting = new Map<number, (request: LlmRequest) => void>()
  return {
    requests,
    arrived: n => {
      const request = requests[n]
      return request ? Promise.resolve(request) : new Promise(resolve => waiting.set(n, resolve))
    },
    async *stream(request, signal) {
      const n = requests.push(request) - 1
      waiting.get(n)?.(request)
      let reply: Reply = replies[Math.min(n, replies.length - 1)] ?? 'ok'
      while (typeof reply === 'function') reply = reply(request)
      for (const part of typeof reply === 'string' ? modelText(reply) : reply) {
        if (part.type === 'wait') await Promise.race([part.until, aborted(signal)])
        if (signal.aborted) return
        if (part.type !== 'wait') yield part
      }
    }
  }
}

/** A model that plays these replies. */
export function scriptedModel(...replies: readonly Reply[]): ScriptedModel {
  const script = replyScript(...replies)
  const protocol = 'scripted'
  const pack = definePack({
    name: 'scripted-model',
    setup(ctx) {
      ctx.contribute(LlmAdapters, { protocol, needs_credential: false, stream: script.stream })
      ctx.contribute(LlmModels, {
        alias: protocol,
        provider_id: protocol,
        protocol,
        name: protocol,
        display_name: 'Scripted model',
        max_context_size: 100_000,
        capabilities: ['tool_use'],
        fallback_default: true
      })
    }
  })
  return { ...script, pack }
}

const usage: TokenUsage = { inputOther: 10, output: 5, inputCacheRead: 0, inputCacheCreation: 0 }

/** A good answer, one piece per word. */
export function modelText(value: string): LlmPart[] {
  const pieces = value.match(/\S+\s*|\s+/g) ?? []
  return [
    ...pieces.map(piece => ({ type: 'text', text: piece }) as const),
    { type: 'usage', usage },
    { type: 'finish', reason: 'completed', raw_reason: 'stop' }
  ]
}

/** An answer that calls tools, several at once. Default id: `call_<n>`, from 1. */
export function toolCalls(...calls: readonly { readonly name: string; readonly args?: unknown; readonly id?: string }[]): LlmPart[] {
  return [
    ...calls.flatMap(({ id, name, args = {} }, at): LlmPart[] => [
      { type: 'tool_call', id: id ?? `call_${at + 1}`, name },
      { type: 'tool_arguments', id: id ?? `call_${at + 1}`, text: JSON.stringify(args) }
    ]),
    { type: 'usage', usage },
    { type: 'finish', reason: 'tool_calls', raw_reason: 'tool_calls' }
  ]
}

/** A request that fails; by default in a way that is worth another attempt. */
export function modelFailure(error: Partial<LlmError> = {}): LlmPart[] {
  return [
    { type: 'error', error: { code: 'provider.api_error', name: 'APIError', message: '503 busy', retryable: true, status: 503, ...error } }
  ]
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
}
