/** Public face of the config pack. */
export { ConfigObject, configChanged, patchConfig, readConfig } from './contract.ts'
export { Environment, type EnvironmentReport } from './environment.ts'
export { lockBounded, replaceBounded } from './given-file.ts'
export { isHeaderValue, notAHeaderValue, reviewSent } from './headers.ts'
export {
  backgroundSection,
  defaultPlanModeSection,
  experimentalSection,
  extraSkillDirsSection,
  hookEvents,
  hooksSection,
  loopControlSection,
  mergeSkillsSection,
  modelCatalogSection,
  planModeSection,
  secondaryModelSection,
  servicesSection,
  subagentSection,
  telemetrySection,
  tokenCountingSection
} from './sections.ts'
export * from './service.ts'
export { redactUrls, restoreUrls } from './urls.ts'
export { watchConfig } from './watch.ts'
