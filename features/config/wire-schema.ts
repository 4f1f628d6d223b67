/** Shapes of the two routes: the domains as they are on the wire, made of the file shapes that packs contribute. */
import { nullable, type TObject, type TSchema, Type } from '../../kernel/index.ts'
import { mapValue, toCamel } from './casing.ts'
import { isSecretKey } from './redaction.ts'
import type { ConfigSection } from './service.ts'

type Fields = Record<string, TSchema>

type Spelling = (key: string) => string

/** The configuration object with the inner shape of every domain. What `base` says of a domain stays where the section has a wire form of its own. */
export function answerSchema(base: TObject, sections: readonly ConfigSection[]): TObject {
  const fields: Fields = {}
  for (const section of sections) {
    if (section.toWire) continue
    const paths = (section.secrets ?? []).map(path => path.split('.'))
    const schema = shown(section.schema, paths)
    fields[section.name] = section.default === undefined ? Type.Optional(schema) : schema
  }
  return Type.Object({ ...base.properties, ...fields }, { description: base.description as string })
}

/**
 * The body of a patch with the inner shape of every domain, spelled as it is answered: everything may be missing or null. The shapes are
 * described only. Sections check the values, because both spellings and unknown keys may be in them, and so that one refusal names all
 * that is wrong.
 */
export function patchSchema(base: TObject, sections: readonly ConfigSection[]): TObject {
  const asInFile: Spelling = key => key
  const shapes: Fields = { ...base.properties }
  for (const { name, schema, toWire } of sections) shapes[name] = nullable(partial(schema, toWire ? asInFile : toCamel))
  const fields = Object.entries(shapes).map(([name, shape]) => [name, Type.Optional(Type.Unknown(shape))])
  return Type.Object(Object.fromEntries(fields), { additionalProperties: Type.Unknown() })
}

/** camelCase and without what redaction takes out. */
function shown(schema: TSchema, secrets: readonly (readonly string[])[]): TSchema {
  const value = mapValue(schema)
  if (value) return Type.Record(Type.String(), shown(value, below(secrets, '*')), described(schema))
  if (schema.items) return { ...schema, items: shown(schema.items as TSchema, below(secrets, '*')) }
  if (!schema.properties) return schema
  const kept = Object.entries(schema.properties as Fields).filter(([key, inner]) => !hidden(key, inner, secrets))
  const required = (schema.required as string[] | undefined)?.filter(key => kept.some(([name]) => name === key))
  return {
    ...schema,
    properties: Object.fromEntries(kept.map(([key, inner]) => [toCamel(key), shown(inner, below(secrets, key))])),
    ...(required && { required: required.map(toCamel) })
  }
}

function hidden(key: string, schema: TSchema, secrets: readonly (readonly string[])[]): boolean {
  return (schema.type !== 'boolean' && isSecretKey(key)) || below(secrets, key).some(rest => rest.length === 0)
}

/** What is left of the paths that lead through `key`. */
function below(paths: readonly (readonly string[])[], key: string): readonly (readonly string[])[] {
  return paths.filter(([head]) => head === '*' || head === key).map(([, ...rest]) => rest)
}

/** As a patch may give it: the fields of a table one by one, a list whole. */
function partial(schema: TSchema, spell: Spelling): TSchema {
  const value = mapValue(schema)
  if (value) return Type.Record(Type.String(), nullable(partial(value, spell)), described(schema))
  if (!schema.properties) return whole(schema, spell)
  const fields = Object.entries(schema.properties as Fields).map(([key, inner]) => [
    spell(key),
    Type.Optional(nullable(partial(inner, spell)))
  ])
  return Type.Object(Object.fromEntries(fields), described(schema))
}

/** Without defaults: what a patch leaves out stays as it is. */
function whole({ default: _, ...schema }: TSchema, spell: Spelling): TSchema {
  if (schema.items) return { ...schema, items: whole(schema.items as TSchema, spell) } as TSchema
  if (!schema.properties) return schema as TSchema
  const fields = Object.entries(schema.properties as Fields).map(([key, inner]) => [spell(key), whole(inner, spell)])
  const required = (schema.required as string[] | undefined)?.map(spell)
  return { ...schema, properties: Object.fromEntries(fields), ...(required && { required }) } as TSchema
}

function described({ description }: TSchema): { description?: string } {
  return description === undefined ? {} : { description }
}
