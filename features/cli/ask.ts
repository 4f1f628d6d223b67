/** Questions at the terminal, on the standard error; the library is loaded with the first one. */
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
  /** Yes or no; Ctrl+C counts as no. */
  confirm(message: string): Promise<boolean>
  /** A text that is not shown while it is typed. Throws when it was cancelled. */
  secret(message: string): Promise<string>
  /** One of the choices; undefined when it was cancelled, also by `signal`. This and what follows throws `Interrupted` after a Ctrl+C. */
  choose<T>(message: string, choices: readonly Choice<T>[], signal?: AbortSignal): Promise<T | undefined>
  /** Any number of the choices; undefined when it was cancelled. */
  chooseSome<T>(message: string, choices: readonly Choice<T>[], signal?: AbortSignal): Promise<readonly T[] | undefined>
  /** A line of text; undefined when it was cancelled. */
  text(message: string, signal?: AbortSignal): Promise<string | undefined>
}

/** Asks at the terminal of this process. */
export const terminalAsk: Ask = {
  async confirm(message) {
    const { confirm, isCancel } = await library()
    const answer = await confirm({ message: printable(message), initialValue: false, output: process.stderr })
    return !isCancel(answer) && answer
  },
  async secret(message) {
    const { password, isCancel } = await library()
    const answer = await password({ message, output: process.stderr })
    if (isCancel(answer)) throw new CommandError('cancelled', 130)
    return answer ?? ''
  },
  async choose(message, choices, signal) {
    const { select, isCancel } = await library()
    const options = { message: printable(message), options: numbered(choices), output: process.stderr, ...(signal ? { signal } : {}) }
    const at = await answered(() => select(options))
    return isCancel(at) ? undefined : choices[at]?.value
  },
  async chooseSome(message, choices, signal) {
    const { multiselect, isCancel } = await library()
    const shown = { message: printable(message), options: numbered(choices), required: true }
    const chosen = await answered(() => multiselect({ ...shown, output: process.stderr, ...(signal ? { signal } : {}) }))
    return isCancel(chosen) ? undefined : chosen.flatMap(at => choices[at]?.value ?? [])
  },
  async text(message, signal) {
    const { text, isCancel } = await library()
    const options = { message: printable(message), output: process.stderr, ...(signal ? { signal } : {}) }
    const answer = await answered(() => text(options))
    return isCancel(answer) ? undefined : (answer ?? '')
  }
}

const library = () => import('@clack/prompts')

/** The library answers Ctrl+C as it does Escape. */
async function answered<T>(ask: () => Promise<T>): Promise<T> {
  let interrupted = false
  const look = (_text: unknown, key: { ctrl?: boolean; name?: string } | undefined) => {
    interrupted ||= key?.ctrl === true && key.name === 'c'
  }
  process.stdin.on('keypress', look)
  try {
    const answer = await ask()
    if (interrupted) throw new Interrupted()
    return answer
  } finally {
    process.stdin.off('keypress', look)
  }
}

function numbered<T>(choices: readonly Choice<T>[]): { value: number; label: string; hint?: string }[] {
  return choices.map(({ label, hint }, value) => ({
    value,
    label: printable(label),
    ...(hint === undefined ? {} : { hint: printable(hint) })
  }))
}
