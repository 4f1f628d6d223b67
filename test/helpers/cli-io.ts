/** Runs commands in this process: what they print is kept, and a list answers what they ask at the terminal. */
import type { Ask } from '../../features/cli/ask.ts'
import { execute } from '../../features/cli/execute.ts'

export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  /** What was asked at the terminal. */
  readonly asked: readonly string[]
}

export interface Given {
  /** Standard input; '' by default. */
  readonly input?: string
  /** Keeps the standard input open behind that. */
  readonly more?: Promise<unknown>
  /** Answers at a terminal, one per question: a choice is answered by its label. Without it nobody sits there. */
  readonly answers?: (question: string) => unknown
  readonly env?: NodeJS.ProcessEnv
  /** Hands out what a Ctrl+C calls. */
  readonly onInterrupt?: (interrupt: () => void) => void
  /** Hears what is printed while the command runs. */
  readonly hear?: (text: string) => void
}

/** Runs a command on a home to its end. */
export async function command(home: string, args: readonly string[], given: Given = {}): Promise<Ran> {
  const { input = '', answers, env = {}, hear } = given
  let stdout = ''
  let stderr = ''
  const asked: string[] = []
  const answer = (question: string): unknown => {
    asked.push(question)
    return answers?.(question)
  }
  const ask: Ask = {
    confirm: async message => answer(message) === true,
    secret: async message => String(answer(message) ?? ''),
    text: async message => answer(message) as string | undefined,
    async choose(message, choices) {
      const label = answer(message)
      return choices.find(choice => choice.label === label)?.value
    },
    async chooseSome(message, choices) {
      const labels = answer(message) as readonly string[] | undefined
      return labels && choices.flatMap(choice => (labels.includes(choice.label) ? [choice.value] : []))
    }
  }
  const interrupts = new Set<() => void>()
  given.onInterrupt?.(() => {
    for (const interrupt of [...interrupts]) interrupt()
  })
  const code = await execute(args, {
    env: { SVC_CODE_HOME: home, SVC_CODE_CATALOG_URL: 'off', PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    out: text => {
      stdout += text
      hear?.(text)
    },
    err: text => {
      stderr += text
      hear?.(text)
    },
    interactive: answers !== undefined,
    ask,
    input: async () => input,
    async *lines() {
      yield* input.split('\n')
      await given.more
    },
    onInterrupt(interrupt) {
      interrupts.add(interrupt)
      return () => interrupts.delete(interrupt)
    },
    flushed: async () => undefined
  })
  return { code, stdout, stderr, asked }
}
