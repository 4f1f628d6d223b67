/** Routes of the API documents (contract 1, What the service does, fact 3). */
import { defineRoute, openObject, Type } from '../../kernel/index.ts'

const json = { types: ['application/json'] }

export const openapi = defineRoute({
  method: 'GET',
  operationId: 'getOpenapiDocument',
  path: '/openapi.json',
  summary: 'OpenAPI document',
  data: openObject({ openapi: Type.String() }),
  binary: json
})
export const asyncapi = defineRoute({
  method: 'GET',
  operationId: 'getAsyncapiDocument',
  path: '/asyncapi.json',
  summary: 'AsyncAPI document',
  data: openObject({ asyncapi: Type.String() }),
  binary: json
})
