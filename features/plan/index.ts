/** Public face of the plan pack. */
export { planEntered, planLeft, planRevised, planRevision } from './contract.ts'
