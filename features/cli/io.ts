/** Where a command reads and writes: the process's own streams, or those of a test. */
import { type Ask, terminalAsk } from './ask.ts'
import { printable } from './printable.ts'

export interface Io {
  readonly env: NodeJS.ProcessEnv
  /** What was asked for: goes to the standard output, alone. */
  readonly out: (text: string) => void
  /** Remarks beside it: goes to the standard error. */
  readonly err: (text: string) => void
  /** Somebody sits at the terminal and can be asked, with `ask`. */
  readonly interactive: boolean
  readonly ask: Ask
  /** The whole standard input as text. */
  readonly input: () => Promise<string>
  /** The lines of the standard input as they come, up to its end. */
  readonly lines: () => AsyncIterable<string>
  /**
   * Calls back at every Ctrl+C (or SIGTERM), and once when the terminal is closed, until the returned function is called; without it a signal
   * ends the process.
   */
  readonly onInterrupt: (hear: () => void) => () => void
  /** Resolves when all that was written has been read, or nobody reads it any more. */
  readonly flushed: () => Promise<unknown>
}

async function* inputLines(): AsyncGenerator<string> {
  const { createInterface } = await import('node:readline')
  yield* createInterface({ input: process.stdin })
}

/** The process's own. */
export function processIo(): Io {
  return {
    env: process.env,
    out: text => void process.stdout.write(process.stdout.isTTY ? printable(text) : text),
    err: text => void process.stderr.write(process.stderr.isTTY ? printable(text) : text),
    interactive: process.stdin.isTTY === true && process.stderr.isTTY === true,
    ask: terminalAsk,
    async input() {
      const lines: string[] = []
      for await (const line of inputLines()) lines.push(line)
      return lines.join('\n')
    },
    lines: inputLines,
    onInterrupt(hear) {
      let closed = false
      const handle = (name: NodeJS.Signals) => {
        if (name === 'SIGHUP' && closed) return // it may come several times
        closed ||= name === 'SIGHUP'
        hear()
      }
      const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
      for (const name of names) process.on(name, handle)
      return () => {
        for (const name of names) process.off(name, handle)
      }
    },
    flushed: () => Promise.all([process.stdout, process.stderr].map(stream => new Promise(resolve => stream.write('', resolve))))
  }
}

export function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}

/** Columns as wide as their widest cell; the last one is not filled up. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => (row[column] ?? '').length)))
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return rows.map(row => `${line(row).trimEnd()}\n`).join('')
}

/** `2026-01-31 13:05`, local time. */
export function shortTime(at: string | number): string {
  const date = new Date(at)
  const two = (value: number) => String(value).padStart(2, '0')
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`
}
