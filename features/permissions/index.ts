/** Public face of the permissions pack. */
export { type Approval, defaultModeSection, type PermissionMode, Permissions, permissionSection } from './contract.ts'
