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
