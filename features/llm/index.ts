/** Public face of the llm pack. */

export { formatError, isTransportError, statusError, streamError, traceOf, transportError } from './errors.ts'
export {
  defaultModelSection,
  defaultProviderSection,
  isLoopback,
  ModelRecord,
  modelsSection,
  ProviderRecord,
  providersSection,
  providerToWire,
  type ThinkingConfig,
  thinkingSection
} from './sections.ts'
export * from './service.ts'
export { createUpstream, readText, type Upstream, type UpstreamReply } from './upstream.ts'
