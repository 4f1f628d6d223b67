/** Public face of the mcp-v2 pack. */
export * from './contract.ts'
