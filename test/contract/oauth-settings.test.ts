/** What the managed login takes from settings: hosts, client id, region (contract 1, Managed login and usage). */
import assert from 'node:assert/strict'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContextLike } from '../../kernel/testing.ts'
import { type Account, account, MANAGED } from '../helpers/account.ts'
import { setEnvironment, withEnvironment } from '../helpers/environment.ts'
import { fakeOauth, granted } from '../helpers/fake-oauth.ts'

const record = (more = '') => `[providers."${MANAGED}"]\ntype = "svc"\nbase_url = "http://127.0.0.1:9/v1"\n${more}`
const plain = (t: TestContextLike) =>
  withEnvironment(t, {
    SVC_CODE_REGION_MARKER: undefined,
    SVC_CODE_OAUTH_HOST: undefined,
    SVC_CODE_API_BASE_URL: undefined,
    SVC_CODE_OAUTH_CLIENT_ID: undefined
  })

test('what is not set up is a 40001 that says everything that is to be set', async t => {
  plain(t)
  for (const options of [
    { client_id: '', oauth_host: '', api_base_url: '' },
    { client_id: ' ', oauth_host: 'login.example', api_base_url: 'ftp://api.example' }
  ]) {
    const { api, fake } = await account(t, { options })

    for (const body of [{ region: 'global' }, {}]) {
      const { status, code, msg, data, details } = await api('POST', '/oauth/login', body)
      assert.deepEqual([status, code, data], [200, 40001, null])
      for (const text of [msg, JSON.stringify(details)]) {
        for (const name of ['SVC_CODE_OAUTH_HOST', 'SVC_CODE_API_BASE_URL', 'SVC_CODE_OAUTH_CLIENT_ID', 'packs.config.oauth.client_id']) {
          assert.ok(text.includes(name), `${name} is not in ${text}`)
        }
      }
    }
    assert.equal((await api('GET', '/oauth/login')).data, null)
    assert.equal(fake.asked('device').length, 0)
  }
})

test('one setting that is missing is named alone', async t => {
  plain(t)
  const { api } = await account(t, { options: { client_id: '' } })

  const { code, msg } = await api('POST', '/oauth/login', {})

  assert.equal(code, 40001)
  assert.match(msg, /SVC_CODE_OAUTH_CLIENT_ID/)
  assert.doesNotMatch(msg, /SVC_CODE_OAUTH_HOST|SVC_CODE_API_BASE_URL/)
})

test('a value of the environment that is no address is named, and nothing else is used in its place', async t => {
  plain(t)
  const { api, fake } = await account(t)
  for (const name of ['SVC_CODE_OAUTH_HOST', 'SVC_CODE_API_BASE_URL']) {
    setEnvironment({ SVC_CODE_OAUTH_HOST: undefined, SVC_CODE_API_BASE_URL: undefined, [name]: 'login.example' })
    const { code, msg } = await api('POST', '/oauth/login', {})
    assert.equal(code, 40001, name)
    assert.ok(msg.includes(name), msg)
  }
  assert.equal(fake.asked('device').length, 0)
})

test('hosts and client id of the environment win over the options', async t => {
  plain(t)
  const { api, fake, begin, settled } = await account(t, {
    scripts: { poll: [granted()] },
    options: { oauth_host: 'http://127.0.0.1:9', api_base_url: 'http://127.0.0.1:9', client_id: 'other' }
  })
  setEnvironment({
    SVC_CODE_OAUTH_HOST: ` ${fake.oauth_host}/ `,
    SVC_CODE_API_BASE_URL: `${fake.api_base_url}/`,
    SVC_CODE_OAUTH_CLIENT_ID: 'client-env'
  })

  await begin({ region: 'global' })
  assert.equal((await settled()).status, 'authenticated')

  assert.deepEqual(
    [...fake.asked('device'), ...fake.asked('poll')].map(({ form }) => form.client_id),
    ['client-env', 'client-env']
  )
  assert.equal((await api('GET', '/config')).data.providers[MANAGED].base_url, fake.api_base_url)
  assert.equal((await api('GET', '/auth')).data.managed_provider.status, 'authenticated')
  assert.equal((await api('GET', '/oauth/usage')).data.kind, 'ok')
  assert.equal((await api('GET', '/oauth/region')).data.region, 'mainland-cn')
})

test('hosts that only one region has: the others are not set up', async t => {
  plain(t)
  const fake = await fakeOauth(t, { poll: [granted()] })
  const { oauth_host, api_base_url } = fake
  const options = { oauth_host: '', api_base_url: '', regions: { global: { oauth_host, api_base_url } } }
  const { api, begin, settled, credential } = await account(t, { fake, options })

  assert.equal((await api('POST', '/oauth/login', {})).code, 40001)
  assert.equal((await api('POST', '/oauth/login', { region: 'mainland-cn' })).code, 40001)
  await begin({ region: 'global' })
  assert.equal((await settled()).status, 'authenticated')

  assert.equal((await api('GET', '/oauth/region')).data.region, 'global')
  assert.equal((await credential('svc-code-global')).access_token, 'access-token-1')
  assert.equal((await api('POST', '/oauth/login', {})).data.status, 'authenticated')
})

test('a login at one region does not count for the other', async t => {
  plain(t)
  const { begin, logIn, settled, fake, api, credential } = await account(t)
  await logIn()

  await begin({ region: 'global' })
  assert.equal((await settled()).status, 'authenticated')

  assert.equal((await api('GET', '/oauth/region')).data.region, 'global')
  assert.ok((await credential('svc-code')) && (await credential('svc-code-global')))
  assert.equal((await api('POST', '/oauth/logout', {})).code, 0)
  assert.deepEqual([await credential('svc-code'), await credential('svc-code-global')], [undefined, undefined])
  assert.equal(fake.asked('device').length, 2)
})

const hosts = { 'mainland-cn': { oauth_host: 'https://cn.example/' }, global: { oauth_host: 'https://global.example' } }
const region = async ({ api }: Account) => (await api('GET', '/oauth/region')).data

test('region: environment, then host of the configuration, then key of the login, then marker, then mainland-cn; nobody is asked', async t => {
  plain(t)
  const server = await account(t, { options: { regions: hosts } })
  const { home, fake } = server
  const toml = (text: string) => writeFile(join(home, 'config.toml'), text)
  assert.deepEqual(await region(server), { region: 'mainland-cn' })

  await writeFile(join(home, 'region'), 'global')
  assert.deepEqual(await region(server), { region: 'global' })
  await toml(record('oauth = { storage = "file", key = "svc-code" }\n'))
  assert.deepEqual(await region(server), { region: 'mainland-cn' })
  await toml(record('oauth = { storage = "file", key = "svc-code-global" }\n'))
  await rm(join(home, 'region'))
  assert.deepEqual(await region(server), { region: 'global' })
  await toml(record('oauth = { storage = "file", key = "svc-code-global", oauth_host = "https://cn.example" }\n'))
  assert.deepEqual(await region(server), { region: 'mainland-cn' })
  await toml(record('oauth = { storage = "file", key = "svc-code-global", oauth_host = "https://else.example" }\n'))
  assert.deepEqual(await region(server), { region: 'global' })
  for (const [host, expected] of [
    ['https://global.example', 'global'],
    ['HTTPS://Global.Example:443/', 'global'],
    ['https://cn.example', 'mainland-cn'],
    ['https://else.example', 'mainland-cn'],
    ['not an address', 'mainland-cn']
  ]) {
    setEnvironment({ SVC_CODE_OAUTH_HOST: host })
    assert.deepEqual(await region(server), { region: expected }, host)
  }
  setEnvironment({ SVC_CODE_OAUTH_HOST: '  ' })
  assert.deepEqual(await region(server), { region: 'global' })
  for (const question of ['device', 'poll', 'refresh', 'models', 'usages', 'me'] as const) assert.equal(fake.asked(question).length, 0)
})

test('region: a marker with odd content, or switched off, counts as none', async t => {
  plain(t)
  const server = await account(t)
  const marker = join(server.home, 'region')
  for (const [text, expected] of [
    ['global\r\n', 'global'],
    ['\uFEFF  global \n\n', 'global'],
    ['mainland-cn', 'mainland-cn'],
    ['', 'mainland-cn'],
    ['GLOBAL', 'mainland-cn'],
    ['global, please', 'mainland-cn'],
    ['global\nmainland-cn', 'mainland-cn'],
    ['global\0', 'mainland-cn'],
    [`global${' '.repeat(1_000_000)}x`, 'mainland-cn']
  ] as const) {
    await writeFile(marker, text)
    assert.deepEqual(await region(server), { region: expected }, JSON.stringify(text.slice(0, 20)))
  }
  await writeFile(marker, 'global')
  for (const [value, expected] of [
    ['off', 'mainland-cn'],
    [' OFF ', 'mainland-cn'],
    ['on', 'global'],
    ['', 'global']
  ] as const) {
    setEnvironment({ SVC_CODE_REGION_MARKER: value })
    assert.deepEqual(await region(server), { region: expected }, value)
  }
  await rm(marker)
  await mkdir(marker)
  assert.deepEqual(await region(server), { region: 'mainland-cn' })
})

test('the marker decides where a login without a region goes, and a region of the request wins over it', async t => {
  plain(t)
  const { home, begin, settled, credential } = await account(t, { scripts: { poll: [granted()] } })
  await writeFile(join(home, 'region'), 'global')
  await begin()
  assert.equal((await settled()).status, 'authenticated')
  assert.ok(await credential('svc-code-global'))

  await begin({ region: 'mainland-cn' })
  assert.equal((await settled()).status, 'authenticated')
  assert.ok(await credential('svc-code'))
})
