/**
 * pino logging: one root, a child per pack, secrets redacted, lines written at once (nothing is lost on exit or crash). And what whoever runs the
 * server sees at the terminal: few lines, in words; the log has the same with its facts.
 */
import { closeSync, fstatSync, mkdirSync, openSync, renameSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Logger as PinoLogger, pino } from 'pino'
import { shortened } from '../text.ts'
import { redactLine, redactText } from './redact.ts'

export type Logger = PinoLogger

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

/** Levels as they stand in the lines of a log: `labels` by number, `values` by name. */
export const { levels } = pino

export interface LogOptions {
  /** Default `info`; `silent` opens nothing. */
  readonly level?: LogLevel
  /** Write here instead of a file. */
  readonly to?: { write(line: string): void }
  /** Size at which the file is rotated, bytes; default 6 MiB. */
  readonly maxBytes?: number
  /** Rotated files that are kept (`.1` is the newest); default 5. */
  readonly keep?: number
}

/** The root logger of a home; `log.child({ pack })` makes a pack's own. `file`: absolute path, used unless the options say otherwise. */
export function createLog({ level = 'info', to, maxBytes = 6 * 1_048_576, keep = 5 }: LogOptions, file: string): Logger {
  const target = level === 'silent' ? { write: () => undefined } : (to ?? rotatingFile(file, maxBytes, keep))
  return pino(
    { level, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime },
    { write: (line: string) => target.write(redactLine(line)) }
  )
}

/**
 * Appends synchronously and rotates by size. What is at the path is looked at before every line: several processes may share the file, and whoever
 * runs the server may move or delete it.
 */
function rotatingFile(path: string, maxBytes: number, keep: number) {
  let fd: number | undefined
  /** The disk took a part of a line only: the next one begins on a line of its own. */
  let isTorn = false

  const open = () => {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    return openSync(path, 'a', 0o600)
  }
  const rotate = () => {
    for (let n = keep; n > 0; n--) {
      const older = n === 1 ? path : `${path}.${n - 1}`
      if (statSync(older, { throwIfNoEntry: false })) renameSync(older, `${path}.${n}`)
    }
  }
  const close = () => {
    if (fd !== undefined) closeSync(fd)
    fd = undefined
  }
  const write = (line: string) => {
    try {
      const there = statSync(path, { throwIfNoEntry: false })
      const isFull = there !== undefined && there.size >= maxBytes
      if (isFull || (fd !== undefined && there?.ino !== fstatSync(fd).ino)) close()
      if (isFull) rotate()
      fd ??= open()
      const bytes = Buffer.from(isTorn ? `\n${line}` : line)
      isTorn = writeSync(fd, bytes) < bytes.length
    } catch {
      close() // a full or missing disk must not end the server; the next line tries again
    }
  }
  return { write }
}

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
  return shortened(redactText(text.slice(0, 4 * maxChars)).replace(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]+/gu, ' '), maxChars)
}
