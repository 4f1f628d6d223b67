/** The door of the kernel: everything a pack may import. */

export { Activity, type Work } from './activity.ts'
export { type BinaryReply, binary, type FileReply, type StreamReply } from './binary.ts'
export { breathe } from './breath.ts'
export { stripUnknown, tidy } from './clean.ts'
export {
  type AnyRoute,
  type BodyOf,
  type DataOf,
  defineEvent,
  defineFrame,
  defineOutFrame,
  defineRoute,
  defineStore,
  type EventSpec,
  type FrameSpec,
  type OutFrameSpec,
  type ParamsOf,
  type QueryOf,
  type RouteSpec,
  type StoreSpec
} from './contract.ts'
export {
  AppError,
  CredentialRejected,
  type Detail,
  type ErrorSpec,
  errorSpec,
  generalErrors,
  InternalError,
  invalid,
  PersistenceFailed,
  RouteMissing,
  Unauthorized,
  ValidationFailed,
  within
} from './errors.ts'
export type { KernelHooks, TapOptions } from './hooks.ts'
export type { Connection, ConnectionInfo, Emit, EmittedEvent, EventTarget, Streams, Watermark } from './hub-types.ts'
export { type Feature, KernelInfo } from './info.ts'
export type { JournaledEvent } from './journal-reverse.ts'
export { withJsonText } from './json-text.ts'
export { secretsIn, secretsSent, withoutSecrets } from './known-secrets.ts'
export { acquireLock, type Lock, lockHolder, withLock } from './lock.ts'
export type { Logger } from './log.ts'
export { type Collection, definePack, type Pack, type PackContext, type RequestInfo, type RouteHandler, type RouteInput } from './pack.ts'
export { redactText, redactUrls } from './redact.ts'
export {
  checker,
  coerce,
  cursorQuery,
  nullable,
  oneOf,
  page,
  problems,
  type Static,
  Time,
  type TObject,
  type TSchema,
  Type
} from './schema.ts'
export { Scope } from './scope.ts'
export { isSecretName, REDACTED } from './secret-names.ts'
export { defineSlot, type Slot, SlotHost } from './slot.ts'
export { BlobMissing, BlobTooLarge } from './storage/index.ts'
export type { BlobStore, DocumentStore, KeyRange, KvOp, KvStore, LogStore, StoreOf } from './storage/ports.ts'
export { type ExtensionPoint, extensionPoint, type ServiceToken, serviceToken } from './token.ts'
