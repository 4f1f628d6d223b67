/** Public face of the history pack. */

export { argumentsFromModel, asData, fromModel } from './as-data.ts'
export { protocolVersion } from './contract.ts'
export { isUserInput, newestWaiting } from './conversation.ts'
export { defineRecord, type HistoryRecord, type RecordSpec, recordTypes, type StateSpec, type Tracked } from './define.ts'
export { givenNumber, isMessage, messageTypes, numberOf } from './message.ts'
export { ContentPart, MediaPart, MediaSource, PromptPart, textOf } from './parts.ts'
export { interruptedResult } from './project.ts'
export { type CoreRecord, contextCompacted, contextUndone, coreRecord, failed, sessionForked, tokensSpent } from './records.ts'
export * from './service.ts'
export { estimateMessage, estimateText } from './tokens.ts'
