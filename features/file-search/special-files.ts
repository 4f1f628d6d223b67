/**
 * Files in the place of ignore files that hold up whoever reads them. ripgrep and git open whatever has such a name: at a pipe they wait for ever,
 * and what has no end they read until the memory is full. Behind a program that takes its time the tree is looked through for them.
 */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { SpecialKind, SpecialsTask } from './specials-worker.ts'

/** Programs that end sooner are not looked behind, ms. */
const PATIENCE_MS = 400
/** What the look may hold. */
const HEAP_MB = 128

/**
 * Calls `found` for each such file below the directory, and in those above it whose files count, until the returned function is called. For the
 * reader ripgrep that is each pipe and each endless file. For git it is endless files alone: pipes are opened for a moment, so that it reads on.
 */
export function lookBehind(task: SpecialsTask, found: (kind: SpecialKind) => void): () => void {
  let worker: Worker | undefined
  const look = () => {
    worker = new Worker(new URL(`./specials-worker${extname(import.meta.url)}`, import.meta.url), {
      workerData: task,
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB }
    })
    worker.unref()
    worker.on('message', found)
    worker.on('error', () => undefined) // the program ends with its time limit
  }
  const timer = setTimeout(() => {
    try {
      look()
    } catch {
      // no thread can be had: as above
    }
  }, PATIENCE_MS)
  return () => {
    clearTimeout(timer)
    void worker?.terminate()
  }
}
