/** Public face of the permissions pack. */
export { defaultModeSection, permissionSection } from './contract.ts'
export * from './service.ts'
