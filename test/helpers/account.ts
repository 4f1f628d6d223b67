/** The full server with the managed login against a fake account, on a clock that the test moves. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { startTestKernel, type TestContextLike, type TestKernel, type TestKernelOptions } from '../../kernel/testing.ts'
import type { Reply } from './conversation.ts'
import { type FakeOauth, type FakeQuestion, type FakeScript, fakeOauth, granted } from './fake-oauth.ts'

export const MANAGED = 'managed:svc-code'

export interface AccountOptions {
  readonly scripts?: Partial<Record<FakeQuestion, FakeScript>>
  /** Over client id, hosts and a second of 1 ms. */
  readonly options?: Readonly<Record<string, unknown>>
  readonly fake?: FakeOauth
  readonly clock?: { now: number }
  /** Content of config.toml. */
  readonly toml?: string
  readonly home?: string
  readonly kernel?: Partial<TestKernelOptions>
}

export interface Account extends TestKernel {
  readonly fake: FakeOauth
  readonly clock: { now: number }
  /** A request below /api/v1. */
  api(method: string, path: string, body?: unknown): Promise<Reply>
  /** Starts a login; fails the test unless it is pending. */
  begin(body?: object): Promise<Reply['data']>
  /** The poll snapshot once the flow is no longer pending. */
  settled(): Promise<Reply['data']>
  /** Starts a login and lets it be granted, with these tokens. */
  logIn(n?: number | string, more?: Readonly<Record<string, unknown>>): Promise<void>
  /** Content of a credential file; undefined without one. */
  credential(slot?: string): Promise<Reply['data']>
  writeCredential(fields: Readonly<Record<string, unknown>>, slot?: string): Promise<void>
}

export const start_time = Date.parse('2026-11-20T12:00:00Z')

export async function account(t: TestContextLike, given: AccountOptions = {}): Promise<Account> {
  const fake = given.fake ?? (await fakeOauth(t, given.scripts))
  const clock = given.clock ?? { now: start_time }
  const kernel = await startTestKernel(t, {
    packs: await loadDefaultPacks(),
    now: () => new Date(clock.now),
    ...(given.home !== undefined && { home: given.home }),
    ...given.kernel,
    config: {
      ...given.kernel?.config,
      oauth: { client_id: 'client-1', oauth_host: fake.oauth_host, api_base_url: fake.api_base_url, poll_unit_ms: 1, ...given.options }
    }
  })
  if (given.toml !== undefined) await writeFile(join(kernel.home, 'config.toml'), given.toml)
  const api = (method: string, path: string, body?: unknown): Promise<Reply> => kernel.rest.json(method, `/api/v1${path}`, body)
  const begin = async (body: object = {}) => {
    const { code, msg, data } = await api('POST', '/oauth/login', body)
    if (code !== 0 || data.status !== 'pending') throw new Error(`the login is not pending: ${code} ${msg} ${data?.status}`)
    return data
  }
  const settled = async () => {
    for (;;) {
      const { data } = await api('GET', '/oauth/login')
      if (!data) throw new Error('no flow was started')
      if (data.status !== 'pending') return data
    }
  }
  const file = (slot: string) => join(kernel.home, 'credentials', `${slot}.json`)
  return {
    ...kernel,
    fake,
    clock,
    api,
    begin,
    settled,
    async logIn(n = 1, more = {}) {
      fake.answer('poll', [granted(n, more)])
      await begin()
      const { status, error_message } = await settled()
      if (status !== 'authenticated') throw new Error(`${status}: ${error_message}`)
    },
    async credential(slot = 'svc-code') {
      try {
        return JSON.parse(await readFile(file(slot), 'utf8'))
      } catch {
        return undefined // logged out
      }
    },
    async writeCredential(fields, slot = 'svc-code') {
      const usual = { access_token: 'a', refresh_token: 'r', expires_at: 0, scope: '', token_type: 'Bearer', expires_in: 3600 }
      await mkdir(join(kernel.home, 'credentials'), { recursive: true })
      await writeFile(file(slot), JSON.stringify({ ...usual, ...fields }))
    }
  }
}
