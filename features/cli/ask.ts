/** Questions at the terminal, on the standard error; the library is loaded with the first one. */
import { firstAbort } from '../../kernel/index.ts'
import { CommandError } from './command-error.ts'
import { printable } from './printable.ts'

/** Ctrl+C while a question was open: there it is a key, and no signal. */
export class Interrupted extends CommandError {
  constructor() {
    super('cancelled', 130)
  }
}

export interface Choice<T> {
  readonly value: T
  readonly label: string
  readonly hint?: string
}

export interface Ask {
  /** Yes or no; Ctrl+C and Ctrl+D count as no. */
  confirm(message: string): Promise<boolean>
  /** A text that is not shown while it is typed. Throws when it was cancelled. */
  secret(message: string): Promise<string>
  /** One of the choices; undefined when it was cancelled, also by Ctrl+D or `signal`. This and what follows throws `Interrupted` after a Ctrl+C. */
  choose<T>(message: string, choices: readonly Choice<T>[], signal?: AbortSignal): Promise<T | undefined>
  /** Any number of the choices; undefined when it was cancelled. */
  chooseSome<T>(message: string, choices: readonly Choice<T>[], signal?: AbortSignal): Promise<readonly T[] | undefined>
  /** A line of text; undefined when it was cancelled. */
  text(message: string, signal?: AbortSignal): Promise<string | undefined>
}

/** Asks at the terminal of this process. */
export const terminalAsk: Ask = {
  async confirm(message) {
    const asking = answered(message, undefined, ({ confirm }, asked) => confirm({ ...asked, initialValue: false }))
    const answer = await asking.catch((error: unknown) => {
      if (error instanceof Interrupted) return false
      throw error
    })
    return answer ?? false
  },
  async secret(message) {
    const answer = await answered(message, undefined, async ({ password }, asked) => (await password(asked)) ?? '')
    if (answer === undefined) throw new CommandError('cancelled', 130)
    return answer
  },
  async choose(message, choices, signal) {
    const at = await answered(message, signal, ({ select }, asked) => select({ ...asked, options: numbered(choices) }))
    return at === undefined ? undefined : choices[at]?.value
  },
  async chooseSome(message, choices, signal) {
    const options = numbered(choices)
    const chosen = await answered(message, signal, ({ multiselect }, asked) => multiselect({ ...asked, options, required: true }))
    return chosen?.flatMap(at => choices[at]?.value ?? [])
  },
  async text(message, signal) {
    return await answered(message, signal, async ({ text }, asked) => (await text(asked)) ?? '')
  }
}

interface Asked {
  readonly message: string
  readonly output: NodeJS.WriteStream
  readonly signal: AbortSignal
}

/**
 * Undefined: it was cancelled. The library answers Ctrl+C as it does Escape: throws `Interrupted` then. At Ctrl+D it stops reading and waits for
 * ever: the question is withdrawn then.
 */
async function answered<T>(
  message: string,
  signal: AbortSignal | undefined,
  ask: (library: typeof import('@clack/prompts'), asked: Asked) => Promise<T>
): Promise<Exclude<T, symbol> | undefined> {
  const library = await import('@clack/prompts')
  // A terminal that does not know its size: letters would stand below each other, and all choices but one be hidden.
  if (process.stderr.columns === 0) process.stderr.columns = 80
  if (process.stderr.rows === 0) process.stderr.rows = 24
  let interrupted = false
  const look = (_text: unknown, key: { ctrl?: boolean; name?: string } | undefined) => {
    interrupted ||= key?.ctrl === true && key.name === 'c'
  }
  const ended = new AbortController()
  let over = false
  // An answer makes it stop reading as well, and is there by then.
  const end = () => setImmediate(() => over || ended.abort())
  process.stdin.on('keypress', look).on('pause', end)
  const withdrawn = firstAbort(...(signal ? [signal] : []), ended.signal)
  try {
    const answer = await ask(library, { message: printable(message), output: process.stderr, signal: withdrawn.signal })
    if (interrupted) throw new Interrupted()
    return library.isCancel(answer) ? undefined : (answer as Exclude<T, symbol>)
  } finally {
    over = true
    withdrawn.end()
    process.stdin.off('keypress', look).off('pause', end)
  }
}

function numbered<T>(choices: readonly Choice<T>[]) {
  return choices.map(({ label, hint }, value) => ({ value, label: printable(label), hint: hint && printable(hint) }))
}
