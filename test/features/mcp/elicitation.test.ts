/** Forms of servers as questions. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Ask, type Form, fillIn } from '../../../features/mcp/elicitation.ts'

/** What a form with one field becomes when the user answers this. */
async function answered(field: object, answer: string) {
  const form = { message: 'Which?', requestedSchema: { properties: { field }, required: ['field'] } } as Form
  const ask: Ask = async ([question]) => ({ answers: { [question?.question ?? '']: answer } })
  return await fillIn('db', form, ask)
}

test('several of some choices are told apart also where their names have commas', async () => {
  const items = { enum: ['red', 'red, or green', 'blue'] }

  assert.deepEqual(await answered({ type: 'array', items }, 'red, or green, blue, red'), {
    action: 'accept',
    content: { field: ['red, or green', 'blue', 'red'] }
  })
  assert.deepEqual(await answered({ type: 'array', items }, 'red, black'), { action: 'cancel' })
})

test('a field with many choices offers to decline and to cancel, and does so', async () => {
  const many = { type: 'string', enum: ['a', 'b', 'c', 'd', 'e'] }

  assert.deepEqual(await answered(many, 'Decline'), { action: 'decline' })
  assert.deepEqual(await answered(many, 'Cancel'), { action: 'cancel' })
  assert.deepEqual(await answered({ ...many, enum: [...many.enum, 'Decline'] }, 'Decline'), {
    action: 'accept',
    content: { field: 'Decline' }
  })
})

test('what a field is by default is offered by the names that are chosen from, and fits when it is taken', async () => {
  const offered: string[] = []
  const take = async (field: object) => {
    const ask: Ask = async ([question]) => {
      const first = question?.options[0]?.label ?? ''
      offered.push(first)
      return { answers: { [question?.question ?? '']: first } }
    }
    return await fillIn('db', { message: 'Which?', requestedSchema: { properties: { field } } } as Form, ask)
  }
  const values = ['a', 'b', 'c', 'd', 'e']
  const named = values.map(each => ({ const: each, title: each.toUpperCase() }))
  const taken = [
    await take({ type: 'string', enum: values, enumNames: named.map(({ title }) => title), default: 'b' }),
    await take({ type: 'string', oneOf: named, default: 'c' }),
    await take({ type: 'array', items: { anyOf: named }, default: ['a', 'b'] }),
    await take({ type: 'array', items: { enum: values }, default: [] }),
    await take({ type: 'string', default: '' }),
    await take({ type: 'string', default: null })
  ]

  assert.deepEqual(offered, ['B', 'C', 'A, B', 'Leave it out', 'Leave it out', 'Leave it out'])
  assert.deepEqual(taken, [
    ...['b', 'c', ['a', 'b']].map(field => ({ action: 'accept', content: { field } })),
    { action: 'accept', content: {} },
    { action: 'accept', content: {} },
    { action: 'accept', content: {} }
  ])
})

test('what a text and a list may be is said, and an answer that does not fit is asked for again', async () => {
  const several = { type: 'array', items: { enum: ['a', 'b', 'c', 'd', 'e'] }, minItems: 1, maxItems: 2 }
  const kinds: readonly [field: object, said: string, wrong: string, right: string, value?: unknown][] = [
    [{ type: 'string', maxLength: 2 }, 'at most 2 characters', 'abc', '😀b'],
    [{ type: 'string', minLength: 2 }, 'at least 2 characters', '😀', 'ab'],
    [{ type: 'string', minLength: 3, maxLength: 20 }, '3 to 20 characters', 'ab', 'abc'],
    [{ type: 'string', format: 'email' }, 'an e-mail address', 'nobody', 'a@example.org'],
    [{ type: 'string', format: 'uri' }, 'a URI', 'example.org', 'https://example.org'],
    [{ type: 'string', format: 'date' }, 'a date as 2026-01-31', '2026-02-30', '2026-02-28'],
    [{ type: 'string', format: 'date-time' }, 'a time as 2026-01-31T12:00:00Z', '2026-01-31 12:00', '2026-01-31T12:00:00+01:00'],
    [several, '1 to 2 of them', 'a, b, c', 'a, b', ['a', 'b']]
  ]
  for (const [field, said, wrong, right, value = right] of kinds) {
    const asked: string[] = []
    const ask: Ask = async ([question]) => {
      asked.push(question?.question ?? '')
      return { answers: { [question?.question ?? '']: asked.length === 1 ? wrong : right } }
    }
    const form = { message: 'Which?', requestedSchema: { properties: { field }, required: ['field'] } } as Form
    assert.deepEqual(await fillIn('db', form, ask), { action: 'accept', content: { field: value } })
    assert.match(asked[0] ?? '', new RegExp(`\\(${said}\\)`))
    assert.match(asked[1] ?? '', /does not fit/)
  }
})
