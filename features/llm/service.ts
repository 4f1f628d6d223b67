/** The model port: one request shape, one stream of parts, adapters keyed by wire protocol. */
import { CredentialRejected, type ErrorShapes, errorSpec, extensionPoint, serviceToken } from '../../kernel/index.ts'
import type { TokenOptions } from './login.ts'
import type { ModelPrice } from './records.ts'
import type { LlmError, LlmPart, LlmRequest, ResolvedModel } from './request.ts'

export { CredentialRejected }

const whose: ErrorShapes = { details: CredentialRejected.details! }

/** 40110: nothing is configured and no pack brings a model along (contract 1, Errors). */
export const NoProvider = errorSpec('no_provider', 40110, 'no provider is configured')
/** 40111: no key, or a login that is missing or over. `details.provider_id`. */
export const NoCredential = errorSpec('no_credential', 40111, 'the provider has no credential', 200, whose)
/** 40113: the alias, its provider or something that its protocol needs is unknown. `details.model_id`, `details.provider_id` where known. */
export const ModelUnresolved = errorSpec('model_unresolved', 40113, 'the model could not be resolved', 200, whose)

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
  /** What a configured model lacks for this protocol, as a short sentence; answers 40113. Asked again when the configuration has changed. */
  missing?(model: ResolvedModel): string | undefined
  /**
   * The model as it is sent: for one with a `key_file`, its access token as `api_key` with `bearer`, and what else the file says. Without
   * this method key files do not count as credentials. Rejects with TokenProblem.
   */
  authorize?(model: ResolvedModel, options: TokenOptions): Promise<ResolvedModel>
  /** URL that `authorize` asks for this key file; undefined when the file cannot be used. Never rejects. */
  tokenUrl?(key_file: string): Promise<string | undefined>
  /** How a server of this protocol is asked for its models; default `{base_url}/models` with a bearer credential. `base_url` is a URL. */
  modelList?(server: ModelServer): ModelListRequest
  stream(request: LlmRequest, signal: AbortSignal): AsyncIterable<LlmPart>
}

/** The form in which servers take requests. Every request is asked about, of turns and of others. */
export interface RequestForm {
  /** The request as it goes out. */
  fit(request: LlmRequest): LlmRequest
  /** The server refused the request, which `fit` made. True: `fit` makes another one now, and that is sent. */
  refused(request: LlmRequest, error: LlmError): boolean
}

export const RequestForms = extensionPoint<RequestForm>(
  'request-forms',
  { fit: 'now', refused: 'now' },
  { fit: 'function', refused: 'function' },
  { fit: request => request, refused: () => false }
)

/** A server that is asked which models it has. */
export interface ModelServer {
  readonly base_url: string
  readonly api_key?: string | undefined
  /** True when `api_key` is an access token. */
  readonly bearer?: boolean
}

/** How a server is asked for its models: a GET. */
export interface ModelListRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

/** One adapter per protocol; of two for one protocol the first counts. */
export const LlmAdapters = extensionPoint<LlmAdapter>(
  'llm-adapters',
  { stream: 'iterable', authorize: 'promise', tokenUrl: 'promise', baseUrl: 'now', missing: 'now', modelList: 'now' },
  { protocol: 'string', stream: 'function' },
  { baseUrl: base_url => base_url, missing: () => undefined, tokenUrl: async () => undefined }
)

/** A model that a pack brings along, beside the configured ones. Configured aliases and defaults win. */
export interface ContributedModel extends Omit<ResolvedModel, 'headers' | 'own_headers'> {
  readonly headers?: Readonly<Record<string, string>>
  /** The server asks for no credential, although the protocol has one. */
  readonly auth?: 'none'
  /** Used when the user has configured no default model. */
  readonly fallback_default?: boolean
  readonly cost?: ModelPrice
}
/** Models of packs: shown in the lists, ready for prompts. */
export const LlmModels = extensionPoint<ContributedModel>('llm-models', undefined, {
  alias: 'string',
  provider_id: 'string',
  protocol: 'string',
  name: 'string',
  display_name: 'string',
  max_context_size: 'number',
  capabilities: 'object'
})

/** The one way to any model. */
export interface Llm {
  /** Resolves an alias, or the default model. Throws 40110, 40111, 40112 (its login was refused), 40113 (with details). */
  resolve(alias?: string): ResolvedModel
  /** As `resolve`; what is unknown is looked for in the configuration file once more: another server may have written it just now. */
  lookUp(alias?: string): Promise<ResolvedModel>
  /** True for an alias that there is, whatever keeps it from being used now. */
  knows(alias: string): boolean
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
