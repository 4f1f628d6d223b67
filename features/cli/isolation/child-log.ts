/** The log of a pack in a process of its own: pino as everywhere, whose lines the server writes. */
import { createLog, type Logger, type LogLevel } from '../../../kernel/log/log.ts'

export function childLog(level: string, tell: (level: string, facts: object, text: string | undefined) => void): Logger {
  const write = (line: string) => {
    const { level: number, time: _time, pid: _pid, msg, ...facts } = JSON.parse(line) as Record<string, unknown>
    tell(levels[String(number)] ?? 'info', facts, msg === undefined ? undefined : String(msg))
  }
  return createLog({ level: level as LogLevel, to: { write } }, '')
}

const levels: Readonly<Record<string, string>> = { 10: 'trace', 20: 'debug', 30: 'info', 40: 'warn', 50: 'error', 60: 'fatal' }
