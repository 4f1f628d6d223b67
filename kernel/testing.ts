/** What the kernel has for tests; packs get it by `testing/`. */

export type { CallInput, Envelope } from './http/inject.ts'
export { RestClient } from './testing/client.ts'
export { journalSuite, type OpenedJournals } from './testing/journal-suite.ts'
export { assertLeavesNothing, assertNothingMore, openResources, type Resources } from './testing/leaks.ts'
export { type PackCheck, type PackCheckOptions, packChecks } from './testing/pack-checks.ts'
export { type Frame, SocketClient, type SocketOptions, type WaitOptions } from './testing/socket.ts'
export { blobSpec, documentSpec, kvSpec, logSpec, type OpenedStorage, storageSuite } from './testing/storage-suite.ts'
export {
  type RecordedEvent,
  startTestKernel,
  stub,
  type TestContextLike,
  type TestKernel,
  type TestKernelOptions,
  testEnvironment
} from './testing/test-kernel.ts'
export {
  type RawAnswer,
  type SeenAnswer,
  type SeenFrame,
  useWitness,
  type Witness,
  type WitnessedSocket,
  witnessedSocket
} from './testing/witness.ts'
