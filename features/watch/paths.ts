/** Paths as clients name them. */
import { AppError } from '../../kernel/index.ts'
import { PathOutside } from '../workspaces/index.ts'

/** Sorted, normalised (`./src/` is `src`, `.` the whole), each once. Throws PathOutside (41304). */
export function normalised(given: readonly string[]): string[] {
  return [...new Set(given.map(normalise))].sort()
}

function _normalised(given: unknown): string[] {
  const texts = Array.isArray(given) ? given.filter((each): each is string => typeof each === 'string') : []
  return [...new Set(texts.map(normalise))].sort()
}

function normalise(given: string): string {
  const text = given.replaceAll('\\', '/')
  const parts = text.split('/').filter(part => part !== '' && part !== '.')
  if (text === '' || text.startsWith('/') || /^[A-Za-z]:/.test(text) || text.includes('\0') || parts.includes('..'))
    throw new AppError(PathOutside, { message: 'a path leads out of the workspace' })
  return parts.join('/') || '.'
}
