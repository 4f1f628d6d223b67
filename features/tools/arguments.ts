/** Understands the argument text a model wrote: JSON, schema, and the key under which equal calls are recognised. */
import { isRecord, problems, type TObject } from '../../kernel/index.ts'
import { argumentsFromModel } from '../history/index.ts'
import type { LlmToolCall } from '../llm/index.ts'
import type { Tool } from './tool.ts'

export interface ParsedCall {
  readonly call: LlmToolCall
  /** What the schema judges; `{}` for an absent, empty or unreadable text. */
  readonly value: unknown
  /** The text is no JSON. */
  readonly unreadable: boolean
  /** The arguments as an object, for events. */
  readonly args: Readonly<Record<string, unknown>>
  /** Equal for calls of one tool with the same arguments, whatever the order of keys. */
  readonly key: string
}

export function parseCall(call: LlmToolCall): ParsedCall {
  const text = call.arguments.trim()
  let value: unknown = {}
  let canonical = text
  let unreadable = false
  if (text !== '') {
    try {
      value = argumentsFromModel(text)
      canonical = stable(value)
    } catch {
      unreadable = true // the schema error then names the missing fields; the raw text stays the key
    }
  } else canonical = '{}'
  const args = isRecord(value) ? value : {}
  return { call, value, unreadable, args, key: `${call.name}\n${canonical}` }
}

/** What is wrong with the arguments, as one sentence naming the tool and the violations; undefined when they fit. */
export function violation(tool: Tool, value: unknown, unreadable = false): string | undefined {
  const found = problems(closed(tool.parameters), value)
  if (found.length === 0) return undefined
  const listed = found.slice(0, 5).map(each => (each.path ? `${each.path}: ${each.message}` : each.message))
  if (unreadable) listed.unshift('they are not valid JSON, so none of them was read')
  const more = found.length > 5 ? `; and ${found.length - 5} more` : ''
  return `Invalid arguments for tool ${tool.name}: ${listed.join('; ')}${more}`
}

const closedSchemas = new WeakMap<TObject, TObject>()

/** The schema with unknown keys forbidden, unless the tool explicitly allows them. */
function closed(schema: TObject): TObject {
  if (schema.additionalProperties !== undefined) return schema
  let made = closedSchemas.get(schema)
  if (!made) {
    made = { ...schema, additionalProperties: false }
    closedSchemas.set(schema, made)
  }
  return made
}

/** A closed schema in the keywords that models know: a choice of words is an `enum`, and values under any names are `additionalProperties`. */
export const shownSchema = (schema: TObject): Record<string, unknown> => JSON.parse(JSON.stringify(closed(schema), plainKeywords))

function plainKeywords(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  const { anyOf, patternProperties, ...rest } = value as { anyOf?: unknown; patternProperties?: Record<string, unknown> }
  if (Array.isArray(anyOf) && anyOf.every(isWord)) return { ...rest, type: 'string', enum: anyOf.map(({ const: word }) => word) }
  if (patternProperties?.[''] !== undefined) return { ...rest, additionalProperties: patternProperties[''] }
  return value
}

const isWord = (schema: { const?: unknown }) => typeof schema.const === 'string'

function stable(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    isRecord(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner
  )
}
