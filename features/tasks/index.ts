/** Public face of the tasks pack. */
export {
  cancelTask,
  detachTask,
  listTasks,
  readTask,
  TaskFinished,
  TaskInfo,
  TaskMissing,
  TaskObject,
  taskStarted,
  taskTerminated
} from './contract.ts'
export { noticeOf as taskNoticesOf, startedRecord as taskBegun, terminatedRecord as taskEnded } from './records.ts'
export * from './service.ts'
export { resumeHint } from './texts.ts'
