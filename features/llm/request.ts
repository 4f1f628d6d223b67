/** What is asked of a model and what comes back: messages, requests, parts, errors. Types only. */
import type { OauthRef } from './records.ts'
import type { TokenUsage } from './usage.ts'

/** A tool call of an answer, as the history keeps it. */
export interface LlmToolCall {
  readonly id: string
  readonly name: string
  /** JSON text exactly as the model wrote it. */
  readonly arguments: string
  /** What the adapter needs to send the call back (signatures, provider ids); nobody else looks inside. */
  readonly extras?: Readonly<Record<string, string>>
  /** How many parts of the message's content were said before it; absent: all of them. */
  readonly after?: number
}

/** A tool call in its place among the other parts of an answer. */
export interface LlmCallPart extends Omit<LlmToolCall, 'after'> {
  readonly type: 'tool_call'
}

/**
 * A part of a message. `data` of an image or video is base64. Only models with `video_in` get videos; an adapter whose protocol has no
 * place for them puts a text.
 */
export type LlmContent =
  /** `signature`: what the adapter needs to send a text of the model back (the phase it belongs to); nobody else looks inside. */
  | { readonly type: 'text'; readonly text: string; readonly signature?: string }
  /** `signature`: opaque, goes back to the provider with the text it seals. `<word>:` in front says that one adapter alone can read it. */
  | { readonly type: 'thinking'; readonly text: string; readonly signature?: string }
  | { readonly type: 'image'; readonly media_type: string; readonly data: string }
  | { readonly type: 'image_url'; readonly url: string }
  | { readonly type: 'video'; readonly media_type: string; readonly data: string }

/** One message of a request. Results of tools follow the answer that called them. */
export type LlmMessage =
  | { readonly role: 'user'; readonly content: readonly LlmContent[] }
  /** Texts, thinking and calls in the order in which the model gave them. */
  | { readonly role: 'assistant'; readonly content: readonly (LlmContent | LlmCallPart)[] }
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
  /**
   * Which thinking of the history goes back: that of the turn that runs, or none. Absent: as `thinking_keep` of the model says. Signatures
   * that a provider demands with its calls are replaced by what it documents for that, where they stay away.
   */
  readonly replayed_thinking?: 'turn' | 'none'
  /** True: every answer goes back with the field for its thinking, also one that has none. On wires with such a field. */
  readonly blank_thinking?: boolean
  /** Fields of the request on the wire (`name`, `name.inner`) that its server refused by name: they stay away. */
  readonly left_out?: readonly string[]
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
  /** Of a `svc` provider, whose requests carry the identity of this host: the headers of its record, which win over that. */
  readonly own_headers?: Readonly<Record<string, string>>
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

/** Largest input of the model in tokens. */
export const windowOf = (model: Pick<ResolvedModel, 'max_input_size' | 'max_context_size'>): number =>
  model.max_input_size ?? model.max_context_size

/** Why an answer ended; `paused`: the provider wants to be asked again, `other`: a reason that has no word here. */
export type FinishReason = 'completed' | 'tool_calls' | 'truncated' | 'filtered' | 'paused' | 'other'

/** A failed model request. It travels inside the stream; streams never reject. */
export interface LlmError {
  /**
   * Engine code: provider.api_error, provider.rate_limit, provider.auth_error, provider.connection_error, provider.overloaded,
   * provider.filtered, context.overflow, model.not_configured, internal
   */
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
  /** A signature seals the text part that is open; text that follows is another part. So does a call, for text and thinking. */
  | { readonly type: 'text'; readonly text: string; readonly signature?: string }
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
