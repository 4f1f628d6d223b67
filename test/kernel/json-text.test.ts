import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { defineEvent, definePack, defineRoute, Type, withJsonText } from '../../kernel/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'

const Big = Type.Object({ a: Type.Integer() })
const read = defineRoute({ method: 'GET', path: '/api/v1/big', summary: 'x', data: Big })
const changed = defineEvent({
  type: 'event.big.changed',
  scope: 'global',
  durable: true,
  payload: Type.Object({ fields: Type.Array(Type.String()), gone: Type.Optional(Type.String()), big: Big })
})

test('the text that is told of an object is sent in replies and events, and nothing else changes', async t => {
  const big = withJsonText({ a: 1 }, '{"a": 1}') // the space shows whose text it is
  const pack = definePack({
    name: 'big',
    setup(ctx) {
      const emit = ctx.event(changed)
      ctx.route(read, () => {
        emit({ fields: ['a', '"b"'], gone: undefined, big })
        return big
      })
    }
  })
  const { rest, connect, home } = await startTestKernel(t, { packs: [pack] })
  const socket = await connect()

  const { body } = await rest.raw('GET', '/api/v1/big')
  const frame = await socket.next(({ type }) => type === changed.type)

  assert.match(String(body), /^\{"code":0,"msg":"success","data":\{"a": 1\},"request_id":"\w{26}"\}$/)
  const journal = await readFile(join(home, 'server', 'events', '__global__.jsonl'), 'utf8')
  assert.ok(journal.endsWith(',"fields":["a","\\"b\\""],"big":{"a": 1}}}\n'), journal)
  assert.deepEqual(frame.payload, { type: changed.type, sessionId: '__global__', fields: ['a', '"b"'], big: { a: 1 } })
})
