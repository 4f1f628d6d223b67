/** Public face of the instructions pack. */
export { readWarnings, Warning } from './contract.ts'
