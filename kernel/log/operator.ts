/** What whoever runs the server sees at the terminal while it runs: few lines, in words, without secrets. The log has the same with its facts. */
import type { Logger } from './log.ts'
import { redactText } from './redact.ts'

/** One line for the terminal. */
export interface OperatorLine {
  readonly level: 'info' | 'warning'
  /** Without line ends and control characters, at most 1,000 characters, secrets redacted. */
  readonly text: string
}

/** Tells whoever runs the server. For what a person should see at once; everything else belongs into the log alone. */
export interface Operator {
  /** An info line of the log, and a line at the terminal. `facts` go into the log beside the text. */
  info(facts: object, text: string): void
  /** The same as a warning. */
  warn(facts: object, text: string): void
}

const maxChars = 1_000

/** `show` gets the lines; what it throws is nobody's fault and costs nobody anything. */
export function createOperator(log: Pick<Logger, 'info' | 'warn'>, show: (line: OperatorLine) => void): Operator {
  const tell = (level: OperatorLine['level'], facts: object, text: string) => {
    log[level === 'info' ? 'info' : 'warn'](facts, text)
    try {
      show({ level, text: shown(text) })
    } catch {
      // a terminal that went away: the log has the line
    }
  }
  return {
    info: (facts, text) => tell('info', facts, text),
    warn: (facts, text) => tell('warning', facts, text)
  }
}

/** Texts of providers and of files may hold anything; none of it may steer the terminal. */
function shown(text: string): string {
  const line = redactText(text.slice(0, 4 * maxChars)).replace(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]+/gu, ' ')
  return line.length > maxChars ? `${line.slice(0, maxChars)}…` : line
}
