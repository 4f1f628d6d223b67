/** The tools that a server lists, looked at one by one: what cannot be offered is left out, and the others are there. */
import { headOf, isRecord } from '../../kernel/index.ts'

/** A tool as its server lists it. */
export interface McpTool {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments. */
  readonly schema: Readonly<Record<string, unknown>>
}

export interface Listed {
  readonly tools: readonly McpTool[]
  /** How many were left out. */
  readonly omitted: number
  /** Of the first ones of them: which, and why. */
  readonly reasons: readonly string[]
}

const nameChars = 200
const descriptionChars = 10_000
const schemaChars = 100_000
const namedOnes = 20

export class Listing implements Listed {
  readonly #limit: number
  readonly tools: McpTool[] = []
  readonly reasons: string[] = []
  omitted = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  add(listed: unknown): void {
    const { name, description, inputSchema, execution } = isRecord(listed) ? listed : {}
    const why = this.#fault(name, inputSchema, execution)
    if (why === undefined) {
      const text = typeof description === 'string' ? headOf(description, descriptionChars) : ''
      this.tools.push({ name: name as string, description: text, schema: inputSchema as McpTool['schema'] })
      return
    }
    if (this.omitted++ < namedOnes) this.reasons.push(`${typeof name === 'string' ? headOf(name, nameChars) : 'a tool'}: ${why}`)
  }

  #fault(name: unknown, schema: unknown, execution: unknown): string | undefined {
    if (typeof name !== 'string' || name === '') return 'it has no name'
    if (name.length > nameChars) return `its name is longer than ${nameChars} characters`
    if (this.tools.length >= this.#limit) return `only ${this.#limit} tools of a server are offered`
    if (isRecord(execution) && execution.taskSupport === 'required') return 'it runs as a task of the server only' // refuses every call
    if (!isRecord(schema)) return 'it has no schema of its arguments'
    if (!isOfObject(schema)) return 'the schema of its arguments is none of an object'
    return JSON.stringify(schema).length > schemaChars ? `the schema of its arguments is longer than ${schemaChars} characters` : undefined
  }
}

/** A provider refuses the whole request for one tool whose schema is none. */
function isOfObject({ type, properties = {}, required = [] }: Readonly<Record<string, unknown>>): boolean {
  if (type !== 'object' || !isRecord(properties) || !Array.isArray(required)) return false
  return (
    Object.values(properties).every(each => typeof each === 'boolean' || isRecord(each)) && required.every(each => typeof each === 'string')
  )
}
