/** The `Llm` service of a small kernel with stubbed configuration, for tests of adapters and of the llm pack. */
import { Config } from '../../features/config/index.ts'
import { Llm, type LlmCallPart, type LlmMessage, type LlmPart, type LlmRequest, type ResolvedModel } from '../../features/llm/index.ts'
import llm from '../../features/llm/pack.ts'
import { definePack, type Pack } from '../../kernel/index.ts'
import { startTestKernel, stub, type TestContextLike } from '../../kernel/testing.ts'

export interface LlmPortOptions {
  readonly packs?: readonly Pack[]
  /** Sections by name: `{ providers: {...}, models: {...} }`; read at every call, so a test may put another section there. */
  readonly config?: Record<string, unknown>
  /** The file is looked at once more. */
  readonly reload?: () => void
  readonly now?: () => Date
}

/** Starts the kernel and hands out the service. */
export async function startLlm(t: TestContextLike, { packs = [], config = {}, reload, now }: LlmPortOptions): Promise<Llm> {
  let found: Llm | undefined
  const user = definePack({
    name: 'llm-user',
    needs: { llm: Llm },
    setup(_ctx, services) {
      found = services.llm
    }
  })
  // The sections' own types belong to the real config pack; here the test is the file.
  let asked = 0
  const values = stub(Config, {
    get revision() {
      return asked++ // it may have changed each time
    },
    get: section => (config[section.name] ?? section.default) as never,
    reload: async () => reload?.(),
    diagnostics: () => []
  })
  await startTestKernel(t, { packs: [values, llm, ...packs, user], ...(now && { now }) })
  if (!found) throw new Error('the llm pack did not become active')
  return found
}

/** A request with everything a test does not care about filled in. */
export function llmRequest(model: ResolvedModel, request: Partial<LlmRequest> = {}): LlmRequest {
  return { model, system: '', messages: [user('hello')], tools: [], cache_key: 'session_1', effort: 'off', ...request }
}

export function user(text: string): LlmMessage {
  return { role: 'user', content: [{ type: 'text', text }] }
}

/** A call as a part of an answer. */
export function toolCall(id: string, more: Partial<LlmCallPart> = {}): LlmCallPart {
  return { type: 'tool_call', id, name: 'Read', arguments: '{"path":"a"}', ...more }
}

/** All parts of a stream, to its end. */
export async function collect(parts: AsyncIterable<LlmPart>): Promise<LlmPart[]> {
  const all: LlmPart[] = []
  for await (const part of parts) all.push(part)
  return all
}

/** Joined text of the parts of one kind. */
export function joined(parts: readonly LlmPart[], type: 'text' | 'thinking'): string {
  return parts.map(part => (part.type === type ? part.text : '')).join('')
}

/** Tool calls as the parts tell them: arguments joined by id. */
export function calls(parts: readonly LlmPart[]): { id: string; name: string; arguments: string }[] {
  return parts
    .filter(part => part.type === 'tool_call')
    .map(({ id, name }) => ({
      id,
      name,
      arguments: parts.map(part => (part.type === 'tool_arguments' && part.id === id ? part.text : '')).join('')
    }))
}

/** The error a stream ended with; throws when it did not. */
export function failure(parts: readonly LlmPart[]) {
  const last = parts.at(-1)
  if (last?.type !== 'error') throw new Error(`the stream ended with ${last?.type ?? 'nothing'} instead of an error`)
  return last.error
}
