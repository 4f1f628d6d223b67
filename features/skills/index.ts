/** Public face of the skills pack. */
export * from './contract.ts'
export { splitArguments } from './expand.ts'
export * from './service.ts'
export { type Scan, scanSkills } from './skill-files.ts'
