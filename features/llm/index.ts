/** Public face of the llm pack. */
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
