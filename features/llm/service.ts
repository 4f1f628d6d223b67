/** The model port: one request shape, one stream of parts, adapters keyed by wire protocol. */
import { errorSpec, extensionPoint, serviceToken } from '../../kernel/index.ts'
import type { TokenOptions } from './login.ts'
import type { ModelPrice, OauthRef } from './sections.ts'

export { CredentialRejected } from '../../kernel/index.ts'

/** 40110: nothing is configured and no pack brings a model along (contract 1, Errors). */
export const NoProvider = errorSpec('no_provider', 40110, 'no provider is configured')
/** 40111: no key, or a login that is missing or over. `details.provider_id`. */
export const NoCredential = errorSpec('no_credential', 40111, 'the provider has no credential')
/** 40113: the alias, its provider or something that its protocol needs is unknown. `details.model_id`, `details.provider_id` where known. */
export const ModelUnresolved = errorSpec('model_unresolved', 40113, 'the model could not be resolved')

/** Tokens of one request. `inputOther` is the uncached part of the input. */
export interface TokenUsage {
  readonly inputOther: number
  readonly output: number
  readonly inputCacheRead: number
  readonly inputCacheCreation: number
}

/** A tool call of an answer, as the history keeps it. */
export interface LlmToolCall {
  readonly id: string
  readonly name: string
  /** JSON text exactly as the model wrote it. */
  readonly arguments: string
  /** What the adapter needs to send the call back (signatures, provider ids); nobody else looks inside. */
  readonly extras?: Readonly<Record<string, string>>
}

/** A part of a message. `data` of an image is base64. */
export type LlmContent =
  | { readonly type: 'text'; readonly text: string }
  /** `signature`: opaque, goes back to the provider with the text it seals. `<word>:` in front says that one adapter alone can read it. */
  | { readonly type: 'thinking'; readonly text: string; readonly signature?: string }
  | { readonly type: 'image'; readonly media_type: string; readonly data: string }
  | { readonly type: 'image_url'; readonly url: string }

/** One message of a request. Results of tools follow the answer that called them. */
export type LlmMessage =
  | { readonly role: 'user'; readonly content: readonly LlmContent[] }
  | { readonly role: 'assistant'; readonly content: readonly LlmContent[]; readonly tool_calls: readonly LlmToolCall[] }
  | {
      readonly role: 'tool'
      readonly tool_call_id: string
      readonly name: string
      readonly content: readonly LlmContent[]
      readonly is_error: boolean
    }

/** A tool that the model may call. */
export interface LlmTool {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments object. */
  readonly parameters: Readonly<Record<string, unknown>>
}

/** One request, the same for every protocol. */
export interface LlmRequest {
  readonly model: ResolvedModel
  readonly system: string
  readonly messages: readonly LlmMessage[]
  readonly tools: readonly LlmTool[]
  /** Session id: cache key where the protocol has one. */
  readonly cache_key: string
  /** `off`, `on` or a named level. */
  readonly effort: string
  /** Limit of the answer in tokens; absent: the adapter knows one, or names none. */
  readonly max_output_tokens?: number
  /** What the messages take of the window, measured and estimated; default 0. */
  readonly context_tokens?: number
}

/** An alias with everything that a request needs. Made by `Llm.resolve`; carries secrets. */
export interface ResolvedModel {
  /** Alias id: key of the model table. */
  readonly alias: string
  readonly provider_id: string
  /** Wire protocol = adapter key: `svc`, `compat_chat`, ... or one that a pack contributed. */
  readonly protocol: string
  /** Upstream model name. */
  readonly name: string
  readonly display_name: string
  /** Without slashes at its end. */
  readonly base_url?: string
  readonly api_key?: string
  /** True when `api_key` is an access token, for protocols that send keys and tokens in different headers. */
  readonly bearer?: boolean
  /** The credential is a login: its access token becomes the `api_key` of each request when it is sent. */
  readonly login?: boolean
  /** The login is the model's own, not the one of its provider. */
  readonly oauth?: OauthRef
  /** Path or text of a key file for which the adapter gets an access token when a request is sent. A secret. */
  readonly key_file?: string
  /** Sent with every request; lower-case names. They win over those of the adapter. */
  readonly headers: Readonly<Record<string, string>>
  /** Cloud project and region, for protocols that address models through them. */
  readonly project?: string
  readonly location?: string
  /** Window in tokens. */
  readonly max_context_size: number
  /** Largest input in tokens; absent: the window. */
  readonly max_input_size?: number
  /** Largest answer in tokens. */
  readonly max_output_size?: number
  /** `thinking`, `always_thinking`, `image_in`, `video_in`, `audio_in`, `tool_use`, or words of a pack. */
  readonly capabilities: readonly string[]
  /** Named levels that the model knows, weakest first; absent: nobody told. */
  readonly support_efforts?: readonly string[]
  readonly default_effort?: string
  /** Level that stands for `off`, where the protocol has no switch. */
  readonly off_effort?: string
  /** Field in which a chat completions server carries reasoning; absent: it is found out. */
  readonly reasoning_key?: string
  /** Whether the model decides by itself how long it thinks; absent: the adapter knows by the name. */
  readonly adaptive_thinking?: boolean
  /** `all`: earlier reasoning is sent back with every message; `off`: never. Default `all`. */
  readonly thinking_keep?: string
  readonly temperature?: number
  readonly top_p?: number
}

/** Why an answer ended; `paused`: the provider wants to be asked again, `other`: a reason that has no word here. */
export type FinishReason = 'completed' | 'tool_calls' | 'truncated' | 'filtered' | 'paused' | 'other'

/** A failed model request. It travels inside the stream; streams never reject. */
export interface LlmError {
  /** Engine code: provider.api_error, provider.rate_limit, provider.auth_error, provider.connection_error, provider.overloaded, provider.filtered, context.overflow, model.not_configured, internal */
  readonly code: string
  readonly message: string
  /** Error class name for `turn.step.retrying`. */
  readonly name: string
  /** The same request may succeed later. */
  readonly retryable: boolean
  /** HTTP status, where there was one. */
  readonly status?: number
  /** What the provider asked for. */
  readonly retry_after_ms?: number
  /** Ids that the provider's support asks for. */
  readonly request_id?: string
  readonly trace_id?: string
}

/** One piece of an answer. */
export type LlmPart =
  | { readonly type: 'text'; readonly text: string }
  /** A signature seals the thinking part that is open; thinking that follows is another part. */
  | { readonly type: 'thinking'; readonly text: string; readonly signature?: string }
  | { readonly type: 'tool_call'; readonly id: string; readonly name: string; readonly extras?: Readonly<Record<string, string>> }
  | { readonly type: 'tool_arguments'; readonly id: string; readonly text: string }
  | { readonly type: 'usage'; readonly usage: TokenUsage }
  | {
      readonly type: 'finish'
      readonly reason: FinishReason
      readonly raw_reason?: string
      readonly response_id?: string
      readonly trace_id?: string
    }
  | { readonly type: 'error'; readonly error: LlmError }

/**
 * Speaks one wire protocol. `stream` never rejects: a failure is the last part. Abort closes the upstream connection and ends the stream.
 * Callers go through `Llm.stream`, which enforces this also for an adapter that does not keep it.
 */
export interface LlmAdapter {
  readonly protocol: string
  /** True when requests need a credential; then a model without one answers 40111 before the turn. */
  readonly needs_credential: boolean
  /** True when the adapter calls a URL; a configured model without one answers 40113. Default false. */
  readonly needs_base_url?: boolean
  /** Used when neither the model nor its provider names a URL. */
  readonly default_base_url?: string
  /**
   * The URL that is called, where the host depends on the region; `base_url` is the configured one. Without this method that one is called.
   */
  baseUrl?(base_url: string | undefined, location: string | undefined): string | undefined
  /** What a configured model lacks for this protocol, as a short sentence; answers 40113. */
  missing?(model: ResolvedModel): string | undefined
  /**
   * The model as it is sent: for one with a `key_file`, its access token as `api_key` with `bearer`, and what else the file says. Without
   * this method key files do not count as credentials. Rejects with TokenProblem.
   */
  authorize?(model: ResolvedModel, options: TokenOptions): Promise<ResolvedModel>
  /** URL that `authorize` asks for this key file; undefined when the file cannot be used. Never rejects. */
  tokenUrl?(key_file: string): Promise<string | undefined>
  stream(request: LlmRequest, signal: AbortSignal): AsyncIterable<LlmPart>
}

/** One adapter per protocol; of two for one protocol the first counts. */
export const LlmAdapters = extensionPoint<LlmAdapter>('llm-adapters')

/** A model that a pack brings along, beside the configured ones. Configured aliases and defaults win. */
export interface ContributedModel extends Omit<ResolvedModel, 'headers'> {
  readonly headers?: Readonly<Record<string, string>>
  /** Used when the user has configured no default model. */
  readonly fallback_default?: boolean
  readonly cost?: ModelPrice
}
/** Models of packs: shown in the lists, ready for prompts. */
export const LlmModels = extensionPoint<ContributedModel>('llm-models')

/** The one way to any model. */
export interface Llm {
  /** Resolves an alias, or the default model. Throws 40110, 40111, 40112 (its login was refused), 40113 (with details). */
  resolve(alias?: string): ResolvedModel
  /** Default alias, if any: configured `default_model`, else a contributed fallback. */
  defaultAlias(): string | undefined
  /** What the tokens of a model cost; undefined when nobody knows. Never throws. */
  price(alias: string): ModelPrice | undefined
  /** Effort to use: environment > requested > config thinking > model default; never throws, what the model cannot do becomes its default. */
  effort(model: ResolvedModel, requested?: string): string
  /** Throws 40001 (path `thinking`) when a `svc` model does not offer this level. For the moment a user asks for it. */
  checkEffort(model: ResolvedModel, requested: string): void
  /**
   * Sends the request through the adapter of its protocol. Never rejects. The last part is exactly one `finish` or `error`; an answer
   * without content is a retryable error. After an abort the stream ends at once, without a last part: look at the signal.
   * Error texts carry neither the key nor header values of the model.
   */
  stream(request: LlmRequest, signal: AbortSignal): AsyncIterable<LlmPart>
}

export const Llm = serviceToken<Llm>('llm')
