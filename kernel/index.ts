/** The door of the kernel: everything a pack may import. Modules that are made for packs are given whole. */

export { defaultScope, isOpenRoute, type Principal } from './access/principal.ts'
export * from './contract.ts'
export * from './elsewhere.ts'
export * from './errors.ts'
export { FileUnusable, homeOfUser, knownHome, readBounded } from './home.ts'
export { type BinaryReply, binary, type FileReply, fileEtag, type StreamReply } from './http/bytes.ts'
export type { CallInput, Envelope, Inject, Injected, InjectOptions } from './http/inject.ts'
export { partedList, partedText } from './http/large-json.ts'
export * from './info.ts'
export { asContributed } from './lifecycle/faces.ts'
export type { LoopTime } from './lifecycle/guard.ts'
export { guardHook, packOfTap, silence, type TapOptions, type TapPoint, type TapPoints } from './lifecycle/hooks.ts'
export { withStreams } from './lifecycle/scope.ts'
export * from './lifecycle/services.ts'
export { type AnySlot, defineSlot, Hosts, type Slot, SlotHost } from './lifecycle/slot.ts'
export * from './lifecycle/wait.ts'
export type { Logger, Operator, OperatorLine } from './log/log.ts'
export { isSecretName, isSecretParameter, REDACTED, redactLine, redactText } from './log/redact.ts'
export * from './pack.ts'
export { EventSubject, globalStream, type SubjectRule } from './realtime/event-frame.ts'
export * from './realtime/journal.ts'
export type * from './realtime/types.ts'
export { checker, problems, tidy } from './schema.ts'
export * from './shapes.ts'
export type { Fence } from './storage/fences.ts'
export {
  checkStoreId,
  type FileStamp,
  makeDirs,
  makeFile,
  type ReplaceOptions,
  readIfThere,
  replaceFile
} from './storage/files.ts'
export { acquireLock, type Lock, type LockHolder, lockHolder, withLock } from './storage/lock.ts'
export { foundAt, identityAt, isMissing, lookAt, lookAtAll, realAt, stampAt, stampsAt, ThisThread } from './storage/look.ts'
export * from './storage/ports.ts'
export { isAbandoned, ownProcess, type ProcessIdentity, processStart, stateOf, temporaryName } from './storage/process-life.ts'
export * from './text.ts'
