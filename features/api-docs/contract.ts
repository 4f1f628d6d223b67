/** Routes of the API documents (contract 1, What the service does, fact 3). */
import { defineRoute, Type } from '../../kernel/index.ts'

const json = { types: ['application/json'] }

export const openapi = defineRoute({
  method: 'GET',
  path: '/openapi.json',
  summary: 'OpenAPI document',
  data: Type.Unknown(),
  binary: json
})
export const asyncapi = defineRoute({
  method: 'GET',
  path: '/asyncapi.json',
  summary: 'AsyncAPI document',
  data: Type.Unknown(),
  binary: json
})
