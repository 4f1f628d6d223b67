/** Which search engine this machine has. */
import type { SearchEngine } from './engine.ts'

let engine: Promise<{ readonly engine: SearchEngine; readonly program: string | undefined }> | undefined

/** The engine of this machine, found at its first use. `program`: ripgrep; undefined: the slower built-in search. */
export function searchEngine(): NonNullable<typeof engine> {
  engine ??= (async () => {
    const { createRipgrep, findRipgrep } = await import('./ripgrep.ts')
    const program = await findRipgrep(process.env)
    return { program, engine: program === undefined ? (await import('./walker.ts')).walker : createRipgrep(program) }
  })()
  return engine
}
