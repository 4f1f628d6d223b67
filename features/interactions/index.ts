/** Public face of the interactions pack. */
export { type ApprovalAsk, approvals } from './approvals.ts'
export * from './contract.ts'
export * from './kind.ts'
export * from './service.ts'
