/** Names of a tool's arguments as every wire takes them: some refuse a whole request for a `$filter` or `ids[]` in the schema of one tool. */
import { isRecord } from '../../kernel/index.ts'
import { fnv1a } from './names.ts'

interface ArgumentNames {
  /** The schema as models see it. */
  readonly schema: Readonly<Record<string, unknown>>
  /** Arguments of a call as the server knows them. */
  own(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>
}

const longest = 64
const fits = /^[A-Za-z0-9_.-]{1,64}$/

/** Names of the schema itself, not of objects in it: those are all that is looked at. A name that is told otherwise is said in its description. */
export function argumentNames(schema: Readonly<Record<string, unknown>>): ArgumentNames {
  const { properties, required } = schema
  if (!isRecord(properties) || Object.keys(properties).every(name => fits.test(name))) return { schema, own: args => args }
  const shown = new Map<string, string>()
  const taken = new Set(Object.keys(properties))
  for (const name of taken) if (!fits.test(name)) shown.set(name, plain(name, taken))
  const back = new Map([...shown].map(([name, other]) => [other, name]))
  const described = ([name, each]: readonly [string, unknown]) => {
    const other = shown.get(name)
    if (other === undefined) return [name, each]
    const text = isRecord(each) && typeof each.description === 'string' ? `${name}: ${each.description}` : name
    return [other, isRecord(each) ? { ...each, description: text } : each]
  }
  return {
    schema: {
      ...schema,
      properties: Object.fromEntries(Object.entries(properties).map(described)),
      ...(Array.isArray(required) ? { required: required.map((name: unknown) => shown.get(name as string) ?? name) } : {})
    },
    own: args => Object.fromEntries(Object.entries(args).map(([name, value]) => [back.get(name) ?? name, value]))
  }
}

/** Another name that is not taken; takes it. */
function plain(name: string, taken: Set<string>): string {
  const written = name.replace(/[^A-Za-z0-9_.-]+/g, '_') || '_'
  const short = written.length <= longest && !taken.has(written)
  const found = short ? written : `${written.slice(0, longest - 9)}_${fnv1a(name)}`
  taken.add(found)
  return found
}
