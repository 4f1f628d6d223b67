/** Public face of the llm pack. */

export { nonBlank, providerKey, providerUrl } from './env-table.ts'
export { authError, errorIn, formatError, isTransportError, statusError, streamError, traceOf, transportError } from './errors.ts'
export type { EventDecoder, StreamLimits } from './event-reader.ts'
export { type EventRequest, streamEvents } from './event-stream.ts'
export { inlineRefs } from './inline-refs.ts'
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
export { untilAborted } from './until-aborted.ts'
export { createUpstream, readText, type Upstream, type UpstreamReply } from './upstream.ts'
export { argumentsObject, CallIds, isImage, listOf, ResponseIds, recordOf, stringOf, textOf, thinkingFrom, tokenCount } from './wire.ts'
