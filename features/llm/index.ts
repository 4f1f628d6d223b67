/** Public face of the llm pack. */

export { formatError, isTransportError, statusError, streamError, traceOf, transportError } from './errors.ts'
export { type EventDecoder, type EventRequest, type StreamLimits, streamEvents } from './event-stream.ts'
export { inlineRefs } from './inline-refs.ts'
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
export { costOf, totalCost } from './price.ts'
export {
  defaultModelSection,
  defaultProviderSection,
  isLoopback,
  ModelPrice,
  ModelRecord,
  modelsSection,
  nonBlank,
  ProviderRecord,
  providerKey,
  providersSection,
  providerToWire,
  providerUrl,
  type ThinkingConfig,
  thinkingSection
} from './sections.ts'
export * from './service.ts'
export { createUpstream, readText, type Upstream, type UpstreamReply } from './upstream.ts'
export { argumentsObject, CallIds, isImage, textOf, thinkingFrom, tokenCount } from './wire.ts'
