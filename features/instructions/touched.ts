/** Where an agent has been with its tools, as its records say; and which instruction files it was told of on the way. */
import { resolve } from 'node:path'
import { coreRecord, type HistoryRecord, recordTypes, type StateSpec } from '../history/index.ts'

/** Of the reminder that names instruction files. */
export const reminderVariant = 'agents_md'

export interface Touched {
  /** Absolute paths that calls named, files or directories, perhaps none of both; the newest last. */
  readonly paths: readonly string[]
  /** Instruction files that a reminder named: each is named once. */
  readonly told: readonly string[]
}

/** Older ones are forgotten. */
const remembered = 200
/** Words of a command that may be paths, and how much of it is looked at. */
const commandWords = 20
const commandChars = 4000

export const touchedState: StateSpec<Touched> = {
  name: 'instructions.touched',
  version: 2,
  records: recordTypes('tool.begin', 'message', 'context.compacted'),
  initial: () => ({ paths: [], told: [] }),
  rewinds: true,
  reduce(state, record) {
    // The model knows no reminder from before.
    if (record.type === 'context.compacted') return { paths: [], told: [] }
    const paths = pathsOf(record)
    if (paths.length > 0) {
      const known = state.paths.filter(path => !paths.includes(path))
      return { ...state, paths: [...known, ...paths].slice(-remembered) }
    }
    const core = coreRecord(record)
    if (core?.type !== 'message' || core.origin?.kind !== 'injection' || core.origin.variant !== reminderVariant) return state
    const told = Array.isArray(core.origin.paths) ? core.origin.paths.map(String) : []
    return { ...state, told: [...new Set([...state.told, ...told])] }
  }
}

/** What a call that ran was about. */
function pathsOf(record: HistoryRecord): readonly string[] {
  const core = coreRecord(record)
  if (core?.type !== 'tool.begin' || core.refused || !core.display) return []
  const { kind, path, command, cwd } = core.display
  if (kind === 'file_io' && typeof path === 'string') return [path]
  if (kind !== 'command' || typeof command !== 'string' || typeof cwd !== 'string') return []
  return [cwd, ...wordsOf(command).map(word => resolve(cwd, word))]
}

/** Words that are neither options nor syntax; whether they are paths, the disk says. */
function wordsOf(command: string): string[] {
  const words = command.slice(0, commandChars).match(/[^\s'"|;&<>()$`{}=]+/g) ?? []
  return [...new Set(words.filter(word => !word.startsWith('-') && !word.includes('://')))].slice(0, commandWords)
}
