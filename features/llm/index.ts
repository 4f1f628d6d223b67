/** Public face of the llm pack. */

export { CallIds, ResponseIds } from './call-ids.ts'
export { canThink } from './effort.ts'
export { nonBlank, providerKey, providerUrl } from './env-table.ts'
export { authError, formatError, statusError, streamError } from './errors.ts'
export type { EventDecoder, StreamLimits } from './event-reader.ts'
export { type EventRequest, streamEvents } from './event-stream.ts'
export { isHttpUrl } from './http-url.ts'
export { inlineRefs } from './inline-refs.ts'
export * from './login.ts'
export { isLoopback } from './loopback.ts'
export { isOfflineEnvironment, offlineSection } from './offline.ts'
export {
  assertOutbound,
  guardOutbound,
  Outbound,
  type OutboundHost,
  OutboundHosts,
  OutboundRefused,
  type OutboundReport,
  type OutboundSource
} from './outbound.ts'
export { withOverrides } from './overrides.ts'
export { costOf, totalCost } from './price.ts'
export {
  defaultModelSection,
  defaultProviderSection,
  ModelPrice,
  ModelRecord,
  modelsSection,
  OauthRef,
  ProviderRecord,
  providersSection,
  providerToWire,
  type ThinkingConfig,
  thinkingSection
} from './sections.ts'
export * from './service.ts'
export { isTransportError, transportError } from './transport-errors.ts'
export { untilAborted } from './until-aborted.ts'
export { createUpstream, readText, type Upstream, type UpstreamReply } from './upstream.ts'
export { errorIn, oneLine } from './upstream-failure.ts'
export { argumentsObject, argumentsText, credentialHeader, isImage, textOf, thinkingFrom } from './wire.ts'
export { listOf, parseJson, recordOf, stringOf, tokenCount } from './wire-values.ts'
