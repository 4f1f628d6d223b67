/** `svc-code config get|set`: the effective configuration, and one value of `config.toml`. */
import { isDeepStrictEqual } from 'node:util'
import { ApiError, type Data, unwrap } from '../../client/index.ts'
import { camelCase } from '../../kernel/index.ts'
import { CommandError } from './command-error.ts'
import type { Runner } from './commands.ts'
import { assertRead } from './config-keys.ts'
import { keysOf } from './deployment.ts'
import { type Io, json } from './io.ts'
import { UsageError } from './options.ts'
import { withServer } from './servers.ts'

type Shown = Data<'/api/v1/config', 'get'>

export const config: Runner = ({ verb, words, flags }, io) =>
  withServer(flags, io, async ({ client }) => {
    const { rest } = client
    const [key, ...more] = words
    const path = key === undefined ? [] : keysOf(key)
    if (key !== undefined && path.length === 0) throw new UsageError(`'${key}' is no key`)
    const before = await unwrap(rest.GET('/api/v1/config'))
    if (verb === 'set') {
      if (path[0] === 'packs') throw new CommandError('[packs] is not set this way: edit it in config.toml, a running server follows')
      await assertRead(client, path, ': nothing was written')
      const value = asValue(more[0] ?? '')
      if (value === null) throw new UsageError(`null takes nothing out: remove ${key} from config.toml`)
      const patch = path.reduceRight<unknown>((inner, word) => ({ [word]: inner }), value)
      const after = await unwrap(rest.POST('/api/v1/config', { body: patch as Record<string, unknown> })).catch(refused)
      return written(before, after, path, io, flags.json)
    }
    if (seen(before, path) === undefined) await assertRead(client, path, '', true)
    return show(before, path, io, flags.json)
  })

/** The server ignores a domain that it does not know. A secret is written and not shown. */
function written(before: Shown, after: Shown, path: readonly string[], io: Io, asJson?: boolean): number {
  const key = path.join('.')
  if (seen(after, path) !== undefined) return show(after, path, io, asJson)
  if (seen(after, path.slice(0, 1)) === undefined && isDeepStrictEqual(before, after)) {
    throw new CommandError(`${key} is no key that the configuration knows: nothing was written`)
  }
  io.err(`${key} is written; it is not shown\n`)
  return 0
}

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
  // Without a path the file is meant.
  const lines = (error.details as { path: string; message: string }[]).map(({ path, message }) =>
    path === '' ? message : `${path.replace(/^body\./, '')}: ${message}`
  )
  throw new CommandError(lines.join('\n'))
}

/** A text as it is, so that scripts can use it; everything else, and with `asJson` all, as JSON. Code 1 when there is no such value. */
function show(whole: Shown, path: readonly string[], { out, err }: Io, asJson = false): number {
  const value = seen(whole, path)
  if (value === undefined) {
    err(`${path.join('.')} is not set\n`)
    return 1
  }
  out(typeof value === 'string' && !asJson ? `${value}\n` : json(value))
  return 0
}

function seen({ raw: _raw, ...effective }: Shown, path: readonly string[]): unknown {
  return path.reduce<unknown>(valueAt, effective)
}

/** Inside a domain the wire spells keys in camelCase, the file in snake_case: both are found. */
function valueAt(at: unknown, word: string): unknown {
  if (typeof at !== 'object' || at === null) return undefined
  const name = [word, camelCase(word)].find(one => Object.hasOwn(at, one))
  return name === undefined ? undefined : (at as Record<string, unknown>)[name]
}
