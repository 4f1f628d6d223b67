/** The routes and the event with the inner shape of every domain, made of the file shapes that packs contribute. */
import { named, nullable, type TObject, type TSchema, Type } from '../../kernel/index.ts'
import { ConfigObject, type ConfigPatch, configChanged, patchConfig, readConfig } from './contract.ts'
import { mapValue, toCamel } from './key-case.ts'
import { isSecretKey, pathsBelow, type SecretPaths, splitPaths } from './redaction.ts'
import type { ConfigSection } from './service.ts'

/** What the routes and the event are documented and checked with. */
interface Shapes {
  readonly answer: typeof ConfigObject
  readonly patch: typeof ConfigPatch
  readonly change: typeof configChanged.payload
}

/**
 * The declared specs with getters, so that they keep their static types and know the sections as they are now. `shapes` are made at first
 * use after a change of the sections.
 */
export class LiveSpecs {
  readonly #sections: () => readonly ConfigSection[]
  #shapes: Shapes | undefined

  constructor(sections: () => readonly ConfigSection[]) {
    this.#sections = sections
  }

  /** Sections came or went. */
  changed(): void {
    this.#shapes = undefined
  }

  get read(): typeof readConfig {
    return Object.defineProperty({ ...readConfig }, 'data', { get: () => this.#now().answer })
  }

  get patch(): typeof patchConfig {
    return Object.defineProperties({ ...patchConfig }, { body: { get: () => this.#now().patch }, data: { get: () => this.#now().answer } })
  }

  get change(): typeof configChanged {
    return Object.defineProperty({ ...configChanged }, 'payload', { get: () => this.#now().change })
  }

  #now(): Shapes {
    if (!this.#shapes) {
      const answer = answerSchema(ConfigObject, this.#sections()) as unknown as typeof ConfigObject // sections extend the declared shape at run time
      const patch = patchSchema(this.#sections()) as unknown as typeof ConfigPatch // as above
      const change = Type.Object({ ...configChanged.payload.properties, config: answer })
      this.#shapes = { answer, patch, change }
    }
    return this.#shapes
  }
}

type Fields = Record<string, TSchema>

type Spelling = (key: string) => string

/** The configuration object with the inner shape of every domain. What `base` says of a domain stays where the section has a wire form of its own. */
function answerSchema(base: TObject, sections: readonly ConfigSection[]): TObject {
  const fields: Fields = {}
  for (const section of sections) {
    if (section.toWire) continue
    const schema = shown(section.schema, splitPaths(section.secrets ?? []))
    fields[section.name] = section.default === undefined ? Type.Optional(schema) : schema
  }
  return named('Config', Type.Object({ ...base.properties, ...fields }, { description: base.description as string }))
}

/**
 * The body of a patch with the inner shape of every domain, spelled as it is answered: everything may be missing or null. The shapes are
 * described only. Sections check the values, because both spellings and unknown keys may be in them, and so that one refusal names all
 * that is wrong.
 */
function patchSchema(sections: readonly ConfigSection[]): TObject {
  const asInFile: Spelling = key => key
  const shapes: Fields = { yolo: nullable(Type.Boolean({ description: 'true: default_permission_mode yolo; false is ignored' })) }
  for (const { name, schema, toWire } of sections) shapes[name] = nullable(partial(schema, toWire ? asInFile : toCamel))
  const fields = Object.entries(shapes).map(([name, shape]) => [name, Type.Optional(Type.Unknown(shape))])
  return named('ConfigPatch', Type.Object(Object.fromEntries(fields), { additionalProperties: Type.Unknown() }))
}

/** camelCase and without what redaction takes out. Keys that nobody knows stay in the file and in the answer, unless the section refuses them. */
function shown(schema: TSchema, secrets: SecretPaths): TSchema {
  const value = mapValue(schema)
  if (value) return Type.Record(Type.String(), shown(value, pathsBelow(secrets, '*')), described(schema))
  if (schema.items) return { ...schema, items: shown(schema.items as TSchema, pathsBelow(secrets, '*')) }
  if (!schema.properties) return schema
  const kept = Object.entries(schema.properties as Fields).filter(([key, inner]) => !hidden(key, inner, secrets))
  const required = (schema.required as string[] | undefined)?.filter(key => kept.some(([name]) => name === key))
  return {
    additionalProperties: true,
    ...schema,
    properties: Object.fromEntries(kept.map(([key, inner]) => [toCamel(key), shown(inner, pathsBelow(secrets, key))])),
    ...(required && { required: required.map(toCamel) })
  }
}

function hidden(key: string, schema: TSchema, secrets: SecretPaths): boolean {
  return (schema.type !== 'boolean' && isSecretKey(key)) || pathsBelow(secrets, key).some(rest => rest.length === 0)
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
