/** Public face of the interactions pack. */
export { type ApprovalAsk, approvals } from './approvals.ts'
export * from './contract.ts'
export * from './kind.ts'
export { endRecord as interactionEnded, requestRecord as interactionRequested } from './records.ts'
export * from './service.ts'
