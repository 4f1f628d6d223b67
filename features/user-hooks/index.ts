/** Public face of the user-hooks pack. */
export * from './contract.ts'
