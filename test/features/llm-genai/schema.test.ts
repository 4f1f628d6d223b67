/** Tool schemas in the subset that the generate-content wire takes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toSchema } from '../../../features/llm-genai/schema.ts'

const property = (schema: unknown) => {
  const { properties } = toSchema({ type: 'object', properties: { x: schema } }) ?? {}
  return (properties as { x?: unknown }).x
}

test('keywords that the wire does not know are left out, at every depth', () => {
  const schema = {
    $schema: 'x',
    type: 'object',
    additionalProperties: false,
    required: ['a', 'ghost'],
    properties: {
      a: {
        type: 'array',
        uniqueItems: true,
        items: { type: 'object', patternProperties: {}, properties: { b: { type: 'integer', default: 1 } } }
      }
    }
  }

  assert.deepEqual(toSchema(schema), {
    type: 'object',
    required: ['a'],
    properties: { a: { type: 'array', items: { type: 'object', properties: { b: { type: 'integer' } } } } }
  })
})

test('an object without properties is no parameters at all', () => {
  assert.equal(toSchema({ type: 'object', properties: {} }), undefined)
  assert.equal(toSchema({}), undefined)
})

test('references are inlined, also those that lead back to themselves', () => {
  const Point = { type: 'object', properties: { next: { $ref: '#/$defs/Point' } } }

  assert.deepEqual(toSchema({ type: 'object', properties: { at: { $ref: '#/$defs/Point' } }, $defs: { Point } })?.properties, {
    at: { type: 'object', properties: { next: { type: 'object' } } }
  })
  assert.deepEqual(toSchema({ $ref: '#/$defs/Point', $defs: { Point } })?.properties, { next: { type: 'object' } })
})

test('a property without a type gets one', () => {
  assert.deepEqual(property({ description: 'x' }), { description: 'x', type: 'string' })
  assert.deepEqual(property({ enum: [1, 2] }), { type: 'integer' })
  assert.deepEqual(property({ items: { type: 'number' } }), { type: 'array', items: { type: 'number' } })
})

test('alternatives and items without a type get one; those that say the same count once', () => {
  assert.deepEqual(property({ anyOf: [{ enum: [1] }, {}, { not: {} }] }), { anyOf: [{ type: 'integer' }, { type: 'string' }] })
  assert.deepEqual(property({ type: 'array', items: { description: 'x' } }), {
    type: 'array',
    items: { description: 'x', type: 'string' }
  })
  const either = { type: 'object', properties: { a: {}, b: {} }, anyOf: [{ required: ['a'] }, { required: ['b'] }] }
  assert.deepEqual(property(either), { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string' } } })
  assert.deepEqual(property({ allOf: [{ type: 'null' }] }), { type: 'string', nullable: true })
})

test('null is nullable, several types are alternatives', () => {
  assert.deepEqual(property({ type: ['string', 'null'] }), { type: 'string', nullable: true })
  assert.deepEqual(property({ anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }] }), {
    type: 'integer',
    minimum: 1,
    nullable: true
  })
  assert.deepEqual(property({ type: ['string', 'integer'], anyOf: [{ minLength: 1 }] }), { type: 'string', minLength: 1 })
  assert.deepEqual(property({ type: ['string', 'integer'] }), { anyOf: [{ type: 'string' }, { type: 'integer' }] })
  assert.deepEqual(property({ oneOf: [{ type: 'string' }, { type: 'boolean' }] }), { anyOf: [{ type: 'string' }, { type: 'boolean' }] })
})

test('each of several types has what is said about its values, once at every depth', () => {
  const source = {
    type: ['object', 'array', 'string', 'null'],
    properties: { a: { type: 'number' } },
    items: { type: 'integer' },
    enum: ['x']
  }
  assert.deepEqual(property(source), {
    anyOf: [
      { type: 'object', properties: { a: { type: 'number' } } },
      { type: 'array', items: { type: 'integer' } },
      { type: 'string', enum: ['x'] }
    ],
    nullable: true
  })
  let nested: Readonly<Record<string, unknown>> = { type: 'string' }
  for (let depth = 0; depth < 30; depth++) nested = { type: ['object', 'string'], properties: { a: nested } }
  assert.ok(JSON.stringify(property(nested)).length < 10_000)
})

test('only strings are enumerated, only known formats named', () => {
  assert.deepEqual(property({ const: 'a' }), { type: 'string', enum: ['a'] })
  assert.deepEqual(property({ type: 'integer', enum: [1, 2] }), { type: 'integer' })
  assert.deepEqual(property({ type: 'string', format: 'uri' }), { type: 'string' })
  assert.deepEqual(property({ type: 'string', format: 'date-time' }), { type: 'string', format: 'date-time' })
})

test('allOf is laid together, a list always says of what', () => {
  const all = { allOf: [{ properties: { a: { type: 'string' } }, required: ['a'] }, { properties: { b: { type: 'number' } } }] }

  assert.deepEqual(property(all), {
    type: 'object',
    properties: { a: { type: 'string' }, b: { type: 'number' } },
    required: ['a']
  })
  assert.deepEqual(property({ type: 'array' }), { type: 'array', items: { type: 'string' } })
})
