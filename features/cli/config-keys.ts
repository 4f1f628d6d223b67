/** Whether somebody reads a key of the configuration: what the server says of the body that changes it. */
import type { Client } from '../../client/index.ts'
import { nearest } from '../../kernel/index.ts'
import { CommandError } from './command-error.ts'

/** The part of a JSON schema that is looked at here; a shape that may be null is an `anyOf`. */
interface Shape {
  readonly anyOf?: readonly Shape[]
  readonly properties?: Readonly<Record<string, Shape>>
  readonly additionalProperties?: Shape | boolean
}

/**
 * Throws for a key below a domain that the server knows, when nobody reads it there, and with `top` for a domain that it does not know. The
 * server itself keeps such keys, for they may be of others. `outcome`: what has become of the command.
 */
export async function assertRead({ rest }: Client, path: readonly string[], outcome = '', top = false): Promise<void> {
  const { data } = await rest.GET('/openapi.json')
  const document = data as { components?: { schemas?: Readonly<Record<string, Shape>> } } | undefined // its pack may be off
  const domains = document?.components?.schemas?.ConfigPatch?.properties
  const [domain = ''] = path
  if (top && domains && !Object.hasOwn(domains, domain)) throw unread([], domain, Object.entries(domains), outcome)
  let shape = domains?.[domain]
  for (const [at, word] of path.entries()) {
    if (at === 0) continue
    const inside: Shape | undefined = shape?.anyOf?.find(one => one.properties ?? one.additionalProperties) ?? shape
    const known = Object.entries(inside?.properties ?? {})
    const found = known.find(([name]) => snake(name) === snake(word))?.[1]
    const free = typeof inside?.additionalProperties === 'object' ? inside.additionalProperties : undefined
    if (known.length > 0 && !found && !free) throw unread(path.slice(0, at), word, known, outcome)
    shape = found ?? free
  }
}

function unread(above: readonly string[], word: string, known: readonly (readonly [string, unknown])[], outcome: string): CommandError {
  const names = known.map(([name]) => snake(name))
  const near = nearest(snake(word), names)
  const all = above.length === 0 ? 'svc-code config get shows what is set' : `${above.join('.')} has ${names.join(', ')}`
  const hint = near === undefined ? all : `did you mean ${near}?`
  return new CommandError(`${[...above, word].join('.')} is no key that the configuration knows${outcome}; ${hint}`)
}

const snake = (key: string): string => key.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
