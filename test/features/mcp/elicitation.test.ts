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
