/** Public face of the interactions pack. */
export { ApprovalRequest, approvalRequested, approvalResolved, listApprovals, resolveApproval } from './contract.ts'
export * from './service.ts'
