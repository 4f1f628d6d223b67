/** Public face of the permissions pack. */

export { modeRecord as permissionModeSet } from './agent-permissions.ts'
export { type Approval, defaultModeSection, PermissionMode, Permissions, permissionSection } from './contract.ts'
