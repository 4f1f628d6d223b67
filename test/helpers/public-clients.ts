/** The public client packages of the four wires, asked the same as our adapters. They are no part of the program. */
import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { PublicProtocol } from './recorded-streams.ts'

type Model = ReturnType<ReturnType<typeof createOpenAI>['responses']>
type Options = Parameters<Model['doStream']>[0]
/** A prompt as the packages take it. */
export type PublicPrompt = Options['prompt']
type ProviderOptions = NonNullable<Options['providerOptions']>

interface Client {
  /** Upstream name that makes the package think as our adapter does at `effort`. */
  readonly model: string
  readonly effort: string
  readonly options: ProviderOptions
  /** What a thinking part of an earlier answer carries: theirs, and our signature of the same. */
  readonly replay: { readonly theirs: ProviderOptions; readonly ours: string }
  open(url: string, model: string): Model
}

/** `url`: base URL as our configuration has it, without a version. */
export const publicClients: Readonly<Record<PublicProtocol, Client>> = {
  compat_chat: {
    model: 'm',
    effort: 'high',
    options: { p: { reasoningEffort: 'high' } },
    replay: { theirs: {}, ours: 'chat:{"model":"m","key":"reasoning_content"}' },
    open: (url, model) => createOpenAICompatible({ name: 'p', baseURL: url, apiKey: 'k', includeUsage: true }).chatModel(model) as Model
  },
  compat_responses: {
    model: 'gpt-5',
    effort: 'high',
    options: { openai: { store: false, reasoningEffort: 'high', reasoningSummary: 'auto' } },
    replay: { theirs: { openai: { itemId: 'rs_0', reasoningEncryptedContent: 'enc0' } }, ours: 'responses:rs_0:enc0' },
    open: (url, model) => createOpenAI({ baseURL: url, apiKey: 'k' }).responses(model)
  },
  compat_messages: {
    model: 'claude-sonnet-4-5',
    effort: 'medium',
    options: { anthropic: { thinking: { type: 'enabled', budgetTokens: 4096 } } },
    replay: { theirs: { anthropic: { signature: 'sig0' } }, ours: 'sig0' },
    open: (url, model) => createAnthropic({ baseURL: `${url}/v1`, apiKey: 'k' }).languageModel(model) as Model
  },
  compat_genai: {
    model: 'gemini-3-pro-preview',
    effort: 'high',
    options: { google: { thinkingConfig: { includeThoughts: true, thinkingLevel: 'high' } } },
    replay: { theirs: { google: { thoughtSignature: 'sig0' } }, ours: 'genai:sig0' },
    open: (url, model) => createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey: 'k' }).languageModel(model) as Model
  }
}

/** The fields of their pieces that are looked at. */
interface Piece {
  readonly type: string
  readonly delta?: string
  readonly toolName?: string
  readonly input?: string
  readonly finishReason?: { readonly unified: string }
  readonly usage?: {
    readonly inputTokens: { readonly noCache?: number; readonly cacheRead?: number }
    readonly outputTokens: { readonly total?: number }
  }
}

/** What a package makes of a stream, in the words of `said`: one line per piece, neighbours of a kind joined, an error last. */
export async function publicStream(model: Model, options: Options): Promise<string[]> {
  const lines: [kind: string, text: string][] = []
  const say = (kind: string, text: string) => {
    const last = lines.at(-1)
    if (last?.[0] === kind && (kind === 'think' || kind === 'say')) last[1] += text
    else lines.push([kind, text])
  }
  try {
    const { stream } = await model.doStream(options)
    for await (const piece of stream as unknown as AsyncIterable<Piece>) {
      const { type, delta, toolName, input, finishReason, usage } = piece
      if (type === 'reasoning-delta' && delta) say('think', delta)
      if (type === 'text-delta' && delta) say('say', delta)
      if (type === 'tool-call') say('call', `${toolName} ${input}`)
      if (type === 'error') return [...lines.map(line => line.join(' ')), 'error']
      if (type === 'finish') {
        const { inputTokens, outputTokens } = usage!
        if (outputTokens.total !== undefined) say('spend', `${inputTokens.noCache} ${outputTokens.total} ${inputTokens.cacheRead}`)
        say('end', finishReason!.unified)
      }
    }
  } catch {
    lines.push(['error', ''])
  }
  return lines.map(line => line.join(' ').trim())
}
