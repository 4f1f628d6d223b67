/** The login as credential of models: readiness before a turn, tokens on requests. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CredentialRejected } from '../../../features/llm/index.ts'
import { refused } from '../../helpers/fake-oauth.ts'
import { modelScene } from './model-scene.ts'
import { scene } from './scene.ts'

test('a model of the managed provider is sent with the access token, which is renewed when it is due', async t => {
  const model = modelScene([])
  const { logIn, clock } = await scene(t, { packs: model.packs })
  await logIn()

  const resolved = model.resolve()
  assert.deepEqual([resolved.alias, resolved.login, resolved.api_key], ['svc-code/large', true, undefined])
  assert.equal((await model.ask(resolved)).at(-1)?.type, 'finish')
  clock.now += 3_600_000
  await model.ask(resolved)

  assert.deepEqual(model.keys, ['access-token-1', 'access-token-renewed-1'])
})

test('a refused token is renewed once and the request sent again', async t => {
  const model = modelScene(['access-token-1'])
  const { logIn } = await scene(t, { packs: model.packs })
  await logIn()

  assert.deepEqual(
    (await model.ask(model.resolve())).map(({ type }) => type),
    ['text', 'finish']
  )
  assert.deepEqual(model.keys, ['access-token-1', 'access-token-renewed-1'])
})

test('a login that was refused for good is 40112 before a turn', async t => {
  const model = modelScene(['access-token-1'])
  const { logIn } = await scene(t, { packs: model.packs, scripts: { refresh: [refused('invalid_grant')] } })
  await logIn()

  const parts = await model.ask(model.resolve())

  assert.deepEqual(
    parts.map(part => part.type === 'error' && part.error.code),
    ['provider.auth_error']
  )
  assert.doesNotMatch(JSON.stringify(parts), /access-token/)
  assert.throws(() => model.resolve(), { spec: CredentialRejected })
})
