/** Names of operations, made of method and path: `listSessions`, `getSession`, `abortSessionPrompt`. */
import type { AnyRoute } from '../../kernel/index.ts'

/** One fixed segment of a path. */
interface Step {
  readonly words: readonly string[]
  /** A parameter follows: one of many is meant. */
  readonly one: boolean
}

/** Last segments that say what is done, not what there is. */
const deeds = new Set(['abort', 'clear', 'export', 'generate', 'import', 'install', 'reset', 'search', 'shutdown', 'stop', 'sync', 'test'])

const verbs = { POST: 'create', PUT: 'replace', PATCH: 'update', DELETE: 'delete' } as const

/**
 * The name that a route gives itself, or one from its path: verb, things, and the version when it is beyond v1. GET lists what is many and
 * gets what is one, POST creates one of many and updates what is one, an action is a verb of its own (`:abort`, `/export`, `/setItem`).
 */
export function operationName({ operationId, method, path }: AnyRoute): string {
  if (operationId !== undefined) return operationId
  const version = /^\/api\/v(\d+)\//.exec(path)?.[1]
  const [steps, action] = stepsOf(path.replace(/^\/api\/(v\d+\/)?/, '/'))
  const last = steps.at(-1)
  const many = last !== undefined && !last.one && singular(last.words.at(-1)!) !== last.words.at(-1)
  const [verb, single] = verbOf(method, action, many)
  const things = steps.map(({ words, one }, index) => {
    // Only the last thing can be many; the others say where it is.
    const alone = index < steps.length - 1 ? one : one || (single && many)
    return alone ? [...words.slice(0, -1), singular(words.at(-1)!)] : words
  })
  const name = camelCase([...verb, ...things.flat()])
  return version === undefined || version === '1' ? name : `${name}V${version}`
}

/** The verb, and whether it is about a single thing even where the path names many. */
function verbOf(
  method: AnyRoute['method'],
  action: string | undefined,
  many: boolean
): readonly [words: readonly string[], single: boolean] {
  if (action !== undefined) return [wordsOf(action), false]
  if (method === 'GET') return [[many ? 'list' : 'get'], false]
  if (method === 'POST' && !many) return [['update'], false]
  return [[verbs[method]], method === 'POST']
}

function stepsOf(path: string): readonly [steps: readonly Step[], action: string | undefined] {
  const colon = path.lastIndexOf(':')
  const segments = (colon < 0 ? path : path.slice(0, colon)).split('/').filter(segment => segment !== '')
  const last = segments.at(-1) ?? ''
  const deed = colon < 0 && (deeds.has(last) || /^[a-z]+[A-Z]/.test(last)) ? segments.pop() : undefined
  const action = colon < 0 ? deed : path.slice(colon + 1)
  const steps = segments.flatMap((segment, index) =>
    segment.startsWith('{') ? [] : [{ words: wordsOf(segment), one: segments[index + 1]?.startsWith('{') === true }]
  )
  return [steps.filter(({ words }) => words.length > 0), action]
}

function wordsOf(segment: string): string[] {
  return segment.split(/[^A-Za-z0-9]+/).filter(word => word !== '')
}

/** Of the nouns that paths are made of. */
function singular(word: string): string {
  if (word === 'children') return 'child'
  if (word.length < 3 || /(ss|us|is)$/.test(word)) return word
  if (word.endsWith('ies')) return `${word.slice(0, -3)}y`
  if (/(ss|us|x|ch|sh)es$/.test(word)) return word.slice(0, -2)
  return word.endsWith('s') ? word.slice(0, -1) : word
}

function camelCase(words: readonly string[]): string {
  return words.map((word, index) => (index === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1))).join('')
}
