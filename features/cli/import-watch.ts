/**
 * What modules of packs do to this process while they are imported: an exception out of a callback, an end of the process. Both are failures of
 * the import that they come from; nobody else is harmed.
 */
import { culprit, filesOf } from './culprit.ts'
import { ownDirectory } from './version.ts'

interface Import {
  /** Of its file. */
  readonly name: string
  readonly source: string
  readonly fail: (error: unknown) => void
}

const running = new Set<Import>()

/** Whose import an exception comes from that nobody caught, by its stack. */
const importOf = (error: unknown): Import | undefined => {
  const found = culprit(error, [...running])
  return found && [...running].find(({ name }) => name === found.pack)
}

/** Whether an exception that nobody caught comes from an import, which fails with it. */
export const isOfImport = (error: unknown): boolean => importOf(error) !== undefined

/** Imports a file of a pack with `work`; rejects as that does, and with what escapes from the file meanwhile. */
export async function watchImport<T>(file: string, work: () => Promise<T>): Promise<T> {
  let fail: (error: unknown) => void = () => undefined
  const escaped = new Promise<never>((_, reject) => {
    fail = reject
  })
  const entry = { name: file, source: file, fail }
  if (running.size === 0) begin()
  running.add(entry)
  try {
    return await Promise.race([work(), escaped])
  } finally {
    running.delete(entry)
    if (running.size === 0) end()
  }
}

const { exit } = process

function begin(): void {
  process.on('uncaughtException', caught)
  process.exit = refused
}

function end(): void {
  process.off('uncaughtException', caught)
  process.exit = exit
}

function caught(error: unknown): void {
  const from = importOf(error)
  from?.fail(error)
  if (from || process.listenerCount('uncaughtException') > 1) return // somebody else knows what to do
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
  exit(1)
}

/** Only the server itself ends it. */
function refused(code?: number | string | null): never {
  const error = new Error(`it called process.exit(${code ?? ''})`)
  Error.captureStackTrace(error, refused)
  if (!isOfImport(error) && filesOf(error.stack ?? '')[0]?.startsWith(ownDirectory())) exit(code)
  throw error
}
