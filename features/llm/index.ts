/** Public face of the llm pack. */
export * from './service.ts'
