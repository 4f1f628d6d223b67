/** `svc-code config get|set`: the effective configuration, and one value of `config.toml`. */
import { ApiError, unwrap } from '../../client/index.ts'
import { CommandError } from './command-error.ts'
import type { Runner } from './commands.ts'
import { keysOf } from './deployment.ts'
import { type Io, json } from './io.ts'
import { UsageError } from './options.ts'
import { withServer } from './servers.ts'

export const config: Runner = ({ verb, words, flags }, io) =>
  withServer(flags, io, async ({ client: { rest } }) => {
    const [key, ...more] = words
    const path = key === undefined ? [] : keysOf(key)
    if (key !== undefined && path.length === 0) throw new UsageError(`'${key}' is no key`)
    if (verb === 'set') {
      const patch = path.reduceRight<unknown>((value, word) => ({ [word]: value }), asValue(more[0] ?? ''))
      const after = await unwrap(rest.POST('/api/v1/config', { body: patch as Record<string, unknown> })).catch(refused)
      show(after, path, io)
      return 0
    }
    const { raw: _raw, ...effective } = await unwrap(rest.GET('/api/v1/config'))
    return show(effective, path, io)
  })

/** JSON when it is some (numbers, true, lists, tables, "quoted"), else the text itself. */
function asValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Every complaint with its key instead of the envelope. */
function refused(error: unknown): never {
  if (!(error instanceof ApiError) || !Array.isArray(error.details)) throw error
  const lines = (error.details as { path: string; message: string }[]).map(
    ({ path, message }) => `${path.replace(/^body\./, '')}: ${message}`
  )
  throw new CommandError(lines.join('\n'))
}

/** A text as it is, so that scripts can use it; everything else as JSON. Code 1 when there is no such value. */
function show(whole: unknown, path: readonly string[], { out, err }: Io): number {
  const value = path.reduce<unknown>((at, word) => valueAt(at, word), whole)
  if (value === undefined) {
    err(`${path.join('.')} is not set\n`)
    return 1
  }
  out(typeof value === 'string' ? `${value}\n` : json(value))
  return 0
}

/** Inside a domain the wire spells keys in camelCase, the file in snake_case: both are found. */
function valueAt(at: unknown, word: string): unknown {
  if (typeof at !== 'object' || at === null) return undefined
  const record = at as Record<string, unknown>
  return record[word] ?? record[word.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())]
}
