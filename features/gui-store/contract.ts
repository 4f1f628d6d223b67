/** Routes of the key/value store of clients, which mirrors the local storage of browsers (contract 3, Key/value store). */
import { defineRoute, defineStore, nullable, Type } from '../../kernel/index.ts'

const Key = Type.String({ minLength: 1, maxLength: 256 })
const path = '/api/v1/gui/store' as const

export const readLength = defineRoute({
  method: 'GET',
  path: `${path}/length`,
  summary: 'Count the keys',
  data: Type.Object({ length: Type.Integer({ minimum: 0 }) })
})

export const getItem = defineRoute({
  method: 'GET',
  path: `${path}/getItem`,
  summary: 'Read a value; null when there is none',
  query: Type.Object({ key: Key }),
  data: Type.Object({ value: nullable(Type.String()) })
})

export const setItem = defineRoute({
  method: 'POST',
  path: `${path}/setItem`,
  summary: 'Write a value',
  body: Type.Object({ key: Key, value: Type.String() }),
  data: Type.Null()
})

export const removeItem = defineRoute({
  method: 'POST',
  path: `${path}/removeItem`,
  summary: 'Remove a key; one that is not there is none',
  body: Type.Object({ key: Key }),
  data: Type.Null()
})

export const clearItems = defineRoute({
  method: 'POST',
  path: `${path}/clear`,
  summary: 'Remove all keys',
  data: Type.Null()
})

export const itemStore = defineStore({ name: 'items', value: Type.String() })
