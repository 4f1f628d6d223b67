/** A model for tests without a network: plays scripted replies, one per request, and remembers the requests. */
import { Llm, type LlmError, type LlmPart, type LlmRequest, type TokenUsage } from '../../features/llm/index.ts'
import { definePack, type Pack } from '../../kernel/index.ts'
import { resolvedModel } from './model.ts'

export type Reply =
  | string
  | readonly (LlmPart | { readonly type: 'wait'; readonly until: Promise<unknown> })[]
  | ((request: LlmRequest) => Reply)

export interface ScriptedLlm {
  readonly pack: Pack
  readonly llm: Llm
  readonly requests: LlmRequest[]
  /** Resolves when request n (from 0) has arrived. */
  arrived(n: number): Promise<LlmRequest>
}

const usage: TokenUsage = { inputOther: 10, output: 5, inputCacheRead: 0, inputCacheCreation: 0 }

export const testModel = resolvedModel({
  alias: 'test',
  provider_id: 'test',
  protocol: 'scripted',
  name: 'test-model',
  display_name: 'Test',
  max_context_size: 100_000
})

/** The last reply repeats. */
export function scriptedLlm(...replies: readonly Reply[]): ScriptedLlm {
  const requests: LlmRequest[] = []
  const waiting = new Map<number, (request: LlmRequest) => void>()
  const llm: Llm = {
    resolve: alias => ({ ...testModel, ...(alias === undefined ? {} : { alias }) }),
    defaultAlias: () => 'test',
    price: () => undefined,
    effort: (_model, requested) => requested ?? 'off',
    checkEffort: () => undefined,
    async *stream(request, signal) {
      const n = requests.push(request) - 1
      waiting.get(n)?.(request)
      let reply: Reply = replies[Math.min(n, replies.length - 1)] ?? 'ok'
      while (typeof reply === 'function') reply = reply(request)
      for (const part of typeof reply === 'string' ? text(reply) : reply) {
        if (part.type === 'wait') await Promise.race([part.until, aborted(signal)])
        if (signal.aborted) return
        if (part.type !== 'wait') yield part
      }
    }
  }
  return {
    llm,
    requests,
    pack: definePack({ name: 'llm', provides: [Llm], setup: ctx => ctx.provide(Llm, llm) }),
    arrived: n => {
      const request = requests[n]
      if (request) return Promise.resolve(request)
      return new Promise(resolve => waiting.set(n, resolve))
    }
  }
}

/** A good answer in one piece per word. */
export function text(value: string): LlmPart[] {
  const pieces = value.match(/\S+\s*|\s+/g) ?? []
  return [
    ...pieces.map(piece => ({ type: 'text', text: piece }) as const),
    { type: 'usage', usage },
    { type: 'finish', reason: 'completed', raw_reason: 'stop' }
  ]
}

/** A response that calls tools. */
export function toolCalls(...calls: readonly { readonly id: string; readonly name: string; readonly args?: unknown }[]): LlmPart[] {
  return [
    ...calls.flatMap(({ id, name, args }): LlmPart[] => [
      { type: 'tool_call', id, name },
      { type: 'tool_arguments', id, text: JSON.stringify(args ?? {}) }
    ]),
    { type: 'usage', usage },
    { type: 'finish', reason: 'tool_calls', raw_reason: 'tool_calls' }
  ]
}

export function failure(error: Partial<LlmError> = {}): LlmPart[] {
  return [
    { type: 'error', error: { code: 'provider.api_error', name: 'APIError', message: '503 busy', retryable: true, status: 503, ...error } }
  ]
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
}
