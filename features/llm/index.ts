/** Public face of the llm pack. */

export { isHttpUrl, isLoopback, notAnAddress } from './addresses.ts'
export { CallIds, callName, ResponseIds } from './call-ids.ts'
export { canThink, samplingOf } from './effort.ts'
export { nonBlank, providerKey, providerToken, providerUrl } from './env-table.ts'
export { authError, formatError, statusError, streamError } from './errors.ts'
export type { EventDecoder, StreamLimits } from './event-reader.ts'
export { type EventRequest, streamEvents } from './event-stream.ts'
export { GrowingWire, holdsThinking } from './growing-wire.ts'
export { HostIdentity } from './host-identity.ts'
export { secretsIn, secretsSent, withoutSecrets } from './known-secrets.ts'
export * from './login.ts'
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
export { proxyUrls } from './proxies.ts'
export { proxyAgent } from './proxy-agent.ts'
export { ModelPrice, ModelRecord, OauthRef, ProviderRecord, withOverrides } from './records.ts'
export * from './request.ts'
export { protocolOf } from './resolve.ts'
export { missingType, typedSchema } from './schema-types.ts'
export {
  defaultModelSection,
  defaultProviderSection,
  modelsSection,
  providersSection,
  providerToWire,
  type ThinkingConfig,
  thinkingSection
} from './sections.ts'
export * from './service.ts'
export { inlineRefs, objectSchema } from './tool-schema.ts'
export { isTransportError, transportError } from './transport-errors.ts'
export { whyUnreachable } from './unreachable.ts'
export { createUpstream, readText, type Upstream, type UpstreamReply } from './upstream.ts'
export { errorIn, oneLine } from './upstream-failure.ts'
export { addUsage, noUsage, sumUsage, TokenUsage, usageSince } from './usage.ts'
export {
  argumentsObject,
  argumentsText,
  callsOf,
  credentialHeader,
  isMedium,
  keptWith,
  modelListRequest,
  textOf,
  thinkingFrom,
  turnStart,
  videoNotice,
  withoutRefused
} from './wire.ts'
export { firstAnswer, listOf, parseJson, recordOf, stringOf, tokenCount } from './wire-values.ts'
