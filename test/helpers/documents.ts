/** Looking into the API documents: validators and operations. */
import { createRequire } from 'node:module'
import { compileErrors, validate } from '@readme/openapi-parser'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'

// biome-ignore lint/suspicious/noExplicitAny: documents are deep JSON that tests look into
export type Document = any

export interface Operation {
  readonly method: string
  readonly path: string
  readonly operation: Document
}

export function operationsOf(document: Document): Operation[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item as object).map(([method, operation]) => ({ method, path, operation }))
  )
}

/** What the public validator objects to; empty when the document is fine. */
export async function openapiProblems(document: object): Promise<string> {
  const result = await validate(JSON.parse(JSON.stringify(document)))
  return result.valid ? result.warnings.map(warning => warning.message).join('\n') : compileErrors(result)
}

/** What the recommended rules of a public linter object to in either kind of document, warnings too. */
export async function lintProblems(document: object): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended'] })
  const found = await lintFromString({ source: JSON.stringify(document), config })
  return found.map(({ ruleId, message, location }) => `${ruleId}: ${message} (${location[0]?.pointer ?? ''})`)
}

export function asyncapiProblems(document: object): string {
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false })
  const schema = createRequire(import.meta.url)('@asyncapi/specs/schemas/3.1.0-without-$id.json') as object
  return ajv.validate(schema, JSON.parse(JSON.stringify(document))) ? '' : ajv.errorsText()
}

/** Checks values against the schema at a place of the document; the text says what is wrong, '' when nothing is. */
export function schemaJudge(document: object): (place: readonly string[], value: unknown) => string {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ ...JSON.parse(JSON.stringify(document)), $id: 'document' })
  return (place, value) => {
    const pointer = place.map(part => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')
    const check = ajv.getSchema(`document#/${pointer}`) // compiled once per place
    if (!check) throw new Error(`the document has nothing at /${pointer}`)
    return check(value) ? '' : ajv.errorsText(check.errors)
  }
}

/** Codes that an operation answers, as `status code`; the success code is left out. */
export function failuresOf(document: Document, operation: Document): string[] {
  return Object.entries(operation.responses).flatMap(([status, given]) => {
    const schema = follow(document, given).content?.['application/json']?.schema ?? {}
    const branches: Document[] = schema.anyOf ?? [schema]
    return branches.filter(branch => branch.$ref).map(branch => `${status} ${follow(document, branch).properties.code.const}`)
  })
}

function follow(document: Document, node: Document): Document {
  if (node.$ref === undefined) return node
  return node.$ref
    .slice(2)
    .split('/')
    .reduce((at: Document, key: string) => at[key], document)
}
