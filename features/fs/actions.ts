/** What the routes do, loaded with the first request. */
export { detailedEntry, entryAt } from './entry.ts'
export { appCommands, launch, openCommands, revealCommands, targetOf } from './launch.ts'
export { listDirectory } from './list.ts'
export { makeIn } from './make.ts'
export { readPart } from './read.ts'
