/** A key file of the cloud as credential: who is asked for tokens, how often, and what is said when none can be had. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Llm, LlmPart } from '../../../features/llm/index.ts'
import llmGenai from '../../../features/llm-genai/pack.ts'
import { clientEmail, fakeTokenService } from '../../helpers/fake-token-service.ts'
import { type FakeUpstream, fakeUpstream, type Script } from '../../helpers/fake-upstream.ts'
import { collect, failure, joined, llmRequest, startLlm } from '../../helpers/llm-port.ts'
import { freshDir } from '../../helpers/temp.ts'
import { genaiWire } from '../../helpers/upstream-genai.ts'

const second = 1_000
const hello: Script = [[{ text: 'hello' }]]

interface Given {
  readonly script?: Script
  readonly env?: Readonly<Record<string, string>>
}

async function scene(t: TestContext, { script = hello, env = {} }: Given = {}) {
  const clock = { now: Date.parse('2026-11-20T12:00:00Z') }
  const service = await fakeTokenService(t, { now: () => clock.now })
  const upstream = await fakeUpstream(t, script, { wire: genaiWire })
  const providers = (more?: object) => ({
    p: { type: 'compat_cloud', base_url: upstream.url, env: { GOOGLE_CLOUD_LOCATION: 'l1', ...env, ...more } }
  })
  const config: Record<string, unknown> = {
    providers: providers(),
    models: { 'p/m': { provider: 'p', model: 'm', max_context_size: 1000 } }
  }
  const llm = await startLlm(t, { packs: [llmGenai], config, now: () => new Date(clock.now) })
  const key = (value: string) => {
    config.providers = providers({ GOOGLE_APPLICATION_CREDENTIALS: value })
  }
  return { clock, service, upstream, llm, key, ask: (signal?: AbortSignal) => ask(llm, signal), tokens: () => sentTokens(upstream) }
}

function ask(llm: Llm, signal = new AbortController().signal): Promise<LlmPart[]> {
  return collect(llm.stream(llmRequest(llm.resolve('p/m')), signal))
}

const sentTokens = ({ requests }: FakeUpstream) => requests.map(({ headers }) => headers.authorization)

test('a service account signs for a token, which goes to the model with the project of the key file', async t => {
  const { ask, key, service, upstream, clock } = await scene(t)
  const file = join(await freshDir(), 'key.json')
  await writeFile(file, service.serviceAccount())
  key(file)

  assert.equal(joined(await ask(), 'text'), 'hello')

  const [request] = upstream.requests
  assert.equal(request?.headers.authorization, 'Bearer cloud-token-1')
  assert.equal(request?.headers['x-goog-api-key'], undefined)
  assert.match(request?.path ?? '', /^\/v1\/projects\/project-1\/locations\/l1\/publishers\//)
  const { claims } = service.asked[0] ?? {}
  assert.deepEqual([claims?.iss, claims?.aud], [clientEmail, service.token_uri])
  assert.ok(Number(claims?.iat) <= clock.now / 1000 && Number(claims?.exp) - Number(claims?.iat) === 3600)
})

test('the text of a key file counts like its path, and a configured project wins over its own', async t => {
  const { ask, key, service, upstream } = await scene(t, { env: { GOOGLE_CLOUD_PROJECT: 'mine' } })
  key(service.serviceAccount())

  assert.equal(joined(await ask(), 'text'), 'hello')
  assert.match(upstream.requests[0]?.path ?? '', /^\/v1\/projects\/mine\//)
})

test('a user file renews with its refresh token and names who pays', async t => {
  const { ask, key, service, upstream } = await scene(t)
  key(service.authorizedUser())

  assert.equal(joined(await ask(), 'text'), 'hello')

  assert.equal(service.asked[0]?.form.grant_type, 'refresh_token')
  assert.equal(upstream.requests[0]?.headers['x-goog-user-project'], 'project-2')
  assert.match(upstream.requests[0]?.path ?? '', /^\/v1\/projects\/project-2\//)
})

test('turns that begin at once share one question, and later ones the token until five minutes before its end', async t => {
  const { ask, key, service, clock, tokens } = await scene(t)
  key(service.serviceAccount())

  await Promise.all([ask(), ask(), ask()])
  clock.now += 3299 * second
  await ask()
  assert.equal(service.asked.length, 1)
  clock.now += 1 * second
  await ask()

  assert.equal(service.asked.length, 2)
  assert.deepEqual(tokens().slice(3), ['Bearer cloud-token-1', 'Bearer cloud-token-2'])
})

test('a token that lives shortly is kept for half of its life', async t => {
  const { ask, key, service, clock } = await scene(t)
  key(service.serviceAccount())
  service.answer({ body: { expires_in: 60 } })

  await ask()
  clock.now += 29 * second
  await ask()
  assert.equal(service.asked.length, 1)
  clock.now += 1 * second
  await ask()
  assert.equal(service.asked.length, 2)
})

test('a token that the model refuses is renewed once and the request sent again', async t => {
  const script: Script = (_, __, { headers }) =>
    headers.authorization === 'Bearer cloud-token-1' ? [{ status: 401 }] : [{ text: 'hello' }]
  const { ask, key, service, tokens } = await scene(t, { script })
  key(service.serviceAccount())

  assert.equal(joined(await ask(), 'text'), 'hello')
  assert.deepEqual(tokens(), ['Bearer cloud-token-1', 'Bearer cloud-token-2'])
})

test('turns whose token is refused together renew it once', async t => {
  const { ask, key, service, upstream } = await scene(t, {
    script: (_, __, { headers }) =>
      headers.authorization === 'Bearer cloud-token-1' ? [{ hang: true }, { status: 401 }] : [{ text: 'hello' }]
  })
  key(service.serviceAccount())
  const first = ask()
  const other = ask()
  await upstream.arrived(1)

  upstream.release()
  await Promise.race([first, other])
  upstream.release()
  await Promise.all([first, other])

  assert.equal(service.asked.length, 2)
})

test('a token that is refused again is an error of the provider', async t => {
  const { ask, key, service, upstream } = await scene(t, { script: [[{ status: 401 }]] })
  key(service.serviceAccount())

  const error = failure(await ask())

  assert.deepEqual([error.code, error.status, error.retryable], ['provider.auth_error', 401, false])
  assert.deepEqual([upstream.requests.length, service.asked.length], [2, 2])
})

test('a refused grant is an auth error that names the provider and tells nothing of the key', async t => {
  const { ask, key, service, upstream } = await scene(t)
  const { privateKey: foreign } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' }
  })
  key(service.serviceAccount({ private_key: foreign }))
  const { code, retryable, message } = failure(await ask())

  assert.deepEqual([code, retryable], ['provider.auth_error', false])
  assert.match(
    message,
    /^provider p: the token service 127\.0\.0\.1:\d+ refused its key file \(HTTP 400, invalid_grant, Invalid JWT Signature of \[redacted\]\)$/
  )
  assert.ok(!message.includes(service.asked[0]?.form.assertion ?? ''))

  key(service.authorizedUser({ refresh_token: 'gone-refresh-token' }))
  assert.match(failure(await ask()).message, /Token has been revoked/)
  assert.equal(upstream.requests.length, 0)
})

test('a token service that cannot be reached or fails is worth another try', async t => {
  const { ask, key, service } = await scene(t)
  key(service.serviceAccount())
  service.answer({ status: 503 }, { cut: true }, { status: 429 }, { body: { access_token: undefined } })

  const errors = [failure(await ask()), failure(await ask()), failure(await ask()), failure(await ask())]
  await service.close()
  errors.push(failure(await ask()))

  for (const { code, retryable, message } of errors) {
    assert.deepEqual([code, retryable], ['provider.connection_error', true], message)
    assert.match(message, /the token service 127\.0\.0\.1:\d+/)
  }
})

test('a token that still lives is used while none can be had', async t => {
  const { ask, key, service, clock, tokens } = await scene(t)
  key(service.serviceAccount())
  await ask()
  service.answer({ status: 503 })

  clock.now += 3500 * second
  assert.equal(joined(await ask(), 'text'), 'hello')
  clock.now += 100 * second
  assert.equal(failure(await ask()).name, 'TokenServiceError')
  assert.deepEqual(tokens(), ['Bearer cloud-token-1', 'Bearer cloud-token-1'])
})

test('a caller that gives up ends at once, and the others get the token', async t => {
  const { ask, key, service, upstream } = await scene(t)
  key(service.serviceAccount())
  let answer: () => void = () => undefined
  const held = new Promise<void>(resolve => {
    answer = resolve
  })
  service.answer({ after: held })
  const abort = new AbortController()
  const left = ask(abort.signal)
  const stays = ask()
  await service.reached(1)

  abort.abort()
  assert.deepEqual(await left, [])
  answer()

  assert.equal(joined(await stays, 'text'), 'hello')
  assert.deepEqual([service.asked.length, upstream.requests.length], [1, 1])
})

test('the key file is read with the first turn, and again when it changes', async t => {
  const { ask, key, service, llm } = await scene(t)
  const file = join(await freshDir(), 'key.json')
  key(file)

  assert.equal(llm.resolve('p/m').key_file, file)
  const missing = failure(await ask())
  assert.deepEqual([missing.code, missing.message], ['provider.auth_error', 'provider p: its key file cannot be read (ENOENT)'])
  await writeFile(file, service.serviceAccount())
  await ask()
  await writeFile(file, service.authorizedUser())
  await ask()
  await unlink(file)
  assert.match(failure(await ask()).message, /ENOENT/)

  assert.deepEqual(
    service.asked.map(({ form }) => form.grant_type?.split(':').at(-1)),
    ['jwt-bearer', 'refresh_token']
  )
})

test('what cannot be a key file is refused with the reason, and nobody is asked', async t => {
  const { ask, key, service } = await scene(t)
  const dir = await freshDir()
  const pipe = join(dir, 'pipe')
  execFileSync('mkfifo', [pipe])
  const long = join(dir, 'long')
  await writeFile(long, JSON.stringify({ type: 'service_account', filler: 'x'.repeat(64 * 1024) }))
  const { privateKey: curve } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' }
  })
  const cases: readonly [value: string, says: RegExp][] = [
    ['key.json', /named by no absolute path/],
    [dir, /not a regular file/],
    [pipe, /not a regular file/],
    [long, /larger than 65536 bytes/],
    ['{"type":', /not JSON/],
    ['{}', /type that is not known/],
    [JSON.stringify({ type: 'external_account' }), /type that is not known/],
    [service.serviceAccount({ client_email: '' }), /no client_email/],
    [service.serviceAccount({ private_key: 7 }), /no private_key/],
    [service.serviceAccount({ private_key: 'secret-but-no-pem' }), /no RSA key/],
    [service.serviceAccount({ private_key: curve }), /no RSA key/],
    [service.authorizedUser({ refresh_token: undefined }), /no refresh_token/],
    [service.serviceAccount({ token_uri: 'http://tokens.invalid/token' }), /not https/],
    [service.serviceAccount({ token_uri: 'http://localhost.evil.invalid/token' }), /not https/],
    [service.serviceAccount({ token_uri: 'https://user:word@tokens.invalid/' }), /user name/],
    [service.serviceAccount({ token_uri: 'tokens' }), /not an address/]
  ]
  for (const [value, says] of cases) {
    key(value)
    const { code, retryable, message } = failure(await ask())
    assert.deepEqual([code, retryable], ['provider.auth_error', false], value)
    assert.match(message, says)
    assert.match(message, /^provider p: /)
    assert.ok(!message.includes('secret') && !message.includes('PRIVATE'), message)
  }
  assert.equal(service.asked.length, 0)
})

test('without any project the turn says what is missing', async t => {
  const { ask, key, service, upstream } = await scene(t)
  key(service.serviceAccount({ project_id: undefined }))

  const error = failure(await ask())

  assert.deepEqual([error.code, error.retryable], ['model.not_configured', false])
  assert.match(error.message, /names no PROJECT, and its key file names no project/)
  assert.equal(upstream.requests.length, 0)
})

test('a key or a token of the provider wins over its key file', async t => {
  const { ask, key, service, tokens } = await scene(t, { env: { GOOGLE_CLOUD_PROJECT: 'mine', GOOGLE_ACCESS_TOKEN: 'ready' } })
  key(service.serviceAccount())

  await ask()

  assert.deepEqual([tokens(), service.asked.length], [['Bearer ready'], 0])
})
