/** The login as credential of models: readiness before a turn, tokens on requests. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CredentialRejected, Llm, LlmAdapters, type LlmPart, type ResolvedModel } from '../../../features/llm/index.ts'
import { definePack } from '../../../kernel/index.ts'
import { refused } from '../../helpers/fake-oauth.ts'
import { scene } from './scene.ts'

/** A `svc` adapter that answers HTTP 401 to the keys in `stale`. */
function modelScene(stale: readonly string[]) {
  const keys: (string | undefined)[] = []
  let llm: Llm | undefined
  const adapter = definePack({
    name: 'adapter',
    setup: ctx =>
      ctx.contribute(LlmAdapters, {
        protocol: 'svc',
        needs_credential: true,
        async *stream({ model }): AsyncGenerator<LlmPart> {
          keys.push(model.api_key)
          const failure = { code: 'provider.auth_error', name: 'AuthError', message: `no ${model.api_key}`, retryable: false, status: 401 }
          if (stale.includes(model.api_key ?? '')) yield { type: 'error', error: failure }
          else {
            yield { type: 'text', text: 'hello' }
            yield { type: 'finish', reason: 'completed' }
          }
        }
      })
  })
  const reader = definePack({
    name: 'reader',
    needs: { llm: Llm },
    setup(_, services) {
      llm = services.llm
    }
  })
  const ask = async (model: ResolvedModel, signal = new AbortController().signal) => {
    const parts: LlmPart[] = []
    const request = { model, system: '', messages: [], tools: [], cache_key: 's', effort: 'off' }
    for await (const part of llm?.stream(request, signal) ?? []) parts.push(part)
    return parts
  }
  const resolve = () => {
    if (!llm) throw new Error('llm is not there')
    return llm.resolve()
  }
  return { packs: [adapter, reader], keys, ask, resolve }
}

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
  assert.throws(model.resolve, { spec: CredentialRejected })
})
