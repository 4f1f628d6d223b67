/** Schemas of tools as they come from servers that nobody here wrote: what is made of them stays small, and is made in no time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inlineRefs, missingType, objectSchema, typedSchema } from '../../../features/llm/index.ts'

test('types that refer to each other do not multiply: the outer ones come whole, those far inside only by their type', () => {
  const names = Array.from({ length: 12 }, (_, at) => `T${at}`)
  const fields = Object.fromEntries(names.map(name => [name, { $ref: `#/$defs/${name}` }]))
  const $defs = Object.fromEntries(names.map(name => [name, { type: 'object', properties: fields }]))
  const before = process.cpuUsage()

  const inlined = inlineRefs({ type: 'object', properties: { first: { $ref: '#/$defs/T0' }, last: { $ref: '#/$defs/T11' } }, $defs })

  const spent = process.cpuUsage(before)
  assert.ok(JSON.stringify(inlined).length < 400_000)
  assert.ok(spent.user + spent.system < 1_000_000)
  const { first, last } = inlined.properties as Record<string, { properties: Record<string, { type: string; properties: object }> }>
  for (const each of [first, last]) assert.deepEqual(Object.keys(each?.properties.T5?.properties ?? {}), names)
  assert.equal(first?.properties.T0?.properties, undefined)
  assert.doesNotMatch(JSON.stringify(inlined), /\$ref/)
})

test('a reference that names nothing leaves the schema as it is otherwise, and a property may be called as one', () => {
  const schema = {
    type: 'object',
    properties: { $ref: { type: 'string' }, half: { $ref: '#/$defs/50%', description: 'x' }, away: { $ref: 'http://x' } }
  }

  assert.deepEqual(inlineRefs(schema), {
    type: 'object',
    properties: { $ref: { type: 'string' }, half: { description: 'x' }, away: {} }
  })
})

test('parameters that are a reference are what it points at', () => {
  const Call = { type: 'object', properties: { at: { $ref: '#/$defs/Call' } }, required: ['at'] }

  const { $defs: _, ...call } = objectSchema({ type: 'object', $ref: '#/$defs/Call', $defs: { Call } })

  assert.deepEqual(call, { type: 'object', properties: { at: { type: 'object' } }, required: ['at'] })
})

test('a schema without a type is of the type that its other keywords speak of, a text where none does', () => {
  const types: Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>> = {
    integer: [{ const: 5 }, { enum: [1, null, 2] }],
    number: [{ const: 0.5 }, { enum: [0.5, 1] }, { enum: [1, 0.5] }, { minimum: 0 }, { maximum: 1 }],
    boolean: [{ const: false }],
    array: [{ const: [] }, { items: {} }, { prefixItems: [] }],
    object: [{ const: {} }, { properties: {} }, { additionalProperties: false }, { required: [] }],
    string: [{}, { const: 'a' }, { enum: ['a', 1] }, { description: 'x' }],
    undefined: [{ type: 'null' }, { anyOf: [] }, { $ref: '#' }]
  }
  for (const [type, schemas] of Object.entries(types))
    for (const schema of schemas) assert.equal(String(missingType(schema)), type, JSON.stringify(schema))
})

test('every value of a schema gets a type, an alternative that of what it stands in; what only adds to one gets none', () => {
  const schema = {
    type: 'object',
    properties: {
      either: { anyOf: [{ enum: [1] }, {}, { type: 'null' }] },
      above: { type: 'integer', oneOf: [{ minimum: 5 }, { maximum: -5 }] },
      properties: { items: { anyOf: [{ const: true }, { items: {} }] } },
      pair: { prefixItems: [{}, { type: 'number' }] },
      map: { additionalProperties: {} },
      both: { allOf: [{ $ref: '#/$defs/Any' }, { properties: { deep: {} } }] }
    },
    $defs: { Any: {} }
  }

  assert.deepEqual(typedSchema(schema), {
    type: 'object',
    properties: {
      either: { anyOf: [{ type: 'integer', enum: [1] }, { type: 'string' }, { type: 'null' }] },
      above: {
        type: 'integer',
        oneOf: [
          { type: 'integer', minimum: 5 },
          { type: 'integer', maximum: -5 }
        ]
      },
      properties: {
        type: 'array',
        items: {
          anyOf: [
            { type: 'boolean', const: true },
            { type: 'array', items: { type: 'string' } }
          ]
        }
      },
      pair: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }] },
      map: { type: 'object', additionalProperties: {} },
      both: { allOf: [{ $ref: '#/$defs/Any' }, { properties: { deep: { type: 'string' } } }] }
    },
    $defs: { Any: { type: 'string' } }
  })
})

test('a schema that has all its types goes out byte for byte as it came', () => {
  const schema = {
    properties: {
      enum: { items: { type: 'string' }, type: 'array' },
      anyOf: { description: 'x', anyOf: [{ const: 'a', type: 'string' }, { $ref: '#/$defs/B' }] },
      data: { type: 'object', default: { properties: { a: {} } }, additionalProperties: { type: 'string' } }
    },
    $defs: { B: { type: 'null' } },
    type: 'object',
    required: ['enum']
  }

  assert.equal(JSON.stringify(typedSchema(schema)), JSON.stringify(schema))
})

test('thousands of alternatives become one object at once; equal ones count once', () => {
  const oneOf = Array.from({ length: 3000 }, (_, at) => ({
    properties: { kind: { const: at }, name: { type: 'string' } },
    required: ['kind']
  }))
  const before = process.cpuUsage()

  const { properties, required } = objectSchema({ type: 'object', oneOf }) as {
    properties: Record<string, { anyOf?: unknown[] }>
    required: string[]
  }

  const spent = process.cpuUsage(before)
  assert.ok(spent.user + spent.system < 300_000)
  assert.equal(properties.kind?.anyOf?.length, 3000)
  assert.deepEqual(properties.name, { type: 'string' })
  assert.deepEqual(required, ['kind'])
})
