/** Public face of the questions pack. */
export * from './contract.ts'
export { type QuestionAsk, questions } from './kind.ts'
