/** What an agent works with whose model has gone, as after a rename of its provider. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Llm, ModelUnresolved } from '../../../features/llm/index.ts'
import { submitPrompt } from '../../../features/prompts/index.ts'
import { readStatus } from '../../../features/session-views/index.ts'
import { AppError } from '../../../kernel/index.ts'
import { stub, type TestContextLike } from '../../../kernel/testing.ts'
import { scriptedLlm } from '../../helpers/scripted-llm.ts'
import { startAgent } from './start.ts'

/** A server whose one model, the default one, `rename` renames. */
async function start(t: TestContextLike) {
  const llm = scriptedLlm('ok')
  let there = 'old'
  const table: Llm = {
    ...llm.llm,
    knows: alias => alias === there,
    defaultAlias: () => there,
    resolve(alias = there) {
      if (alias !== there) throw new AppError(ModelUnresolved)
      return llm.llm.resolve(alias)
    }
  }
  const server = await startAgent(t, { ...llm, pack: stub(Llm, table) })
  const params = { session_id: server.session_id }
  return {
    ...server,
    models: () => llm.requests.map(({ model }) => model.alias),
    status: async () => (await server.call(readStatus, { params })).data.model,
    submit: () => server.call(submitPrompt, { params, body: { content: [{ type: 'text', text: 'x' }] } }),
    rename: (to: string) => {
      there = to
    }
  }
}

test('a model that nobody chose gives way to the default one when it is gone, and is kept as long as it is there', async t => {
  const { prompt, settled, models, status, rename } = await start(t)
  await prompt('one')
  await settled(1)
  rename('new')

  assert.equal(await status(), 'new')
  await prompt('two')
  await settled(2)

  assert.deepEqual(models(), ['old', 'new'])
})

test('a model that was chosen is missed when it is gone, also where it was the default one before', async t => {
  const { prompt, settled, submit, status, rename } = await start(t)
  await prompt('one')
  await settled(1)
  await prompt('two', { model: 'old' })
  await settled(2)
  rename('new')

  assert.equal((await submit()).code, ModelUnresolved.code)
  assert.equal(await status(), 'old')
})
