/** A server with the managed login against a fake account, on a clock that the test moves. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import config from '../../../features/config/pack.ts'
import { type AccessTokenOptions, type LlmLogin, LlmLogins } from '../../../features/llm/index.ts'
import llm from '../../../features/llm/pack.ts'
import { readLogin, startLogin } from '../../../features/oauth/index.ts'
import oauth from '../../../features/oauth/pack.ts'
import { definePack, type Pack } from '../../../kernel/index.ts'
import { startTestKernel, type TestContextLike, type TestKernel } from '../../../kernel/testing.ts'
import { type FakeOauth, type FakeQuestion, type FakeScript, fakeOauth, granted } from '../../helpers/fake-oauth.ts'

export interface Clock {
  now: number
}

/** As packs ask it, options left out. */
export interface Login extends Pick<LlmLogin, 'status'> {
  accessToken(provider_id: string, options?: AccessTokenOptions): Promise<string | undefined>
}

export interface Scene extends TestKernel {
  readonly fake: FakeOauth
  readonly clock: Clock
  /** The login that other packs get. */
  readonly login: Login
  /** The poll snapshot once the flow is no longer pending. */
  settled(): Promise<NonNullable<Awaited<ReturnType<typeof snapshot>>>>
  /** Starts a login and lets it be granted. */
  logIn(): Promise<void>
  credential(slot?: string): Promise<Record<string, unknown> | undefined>
}

export interface SceneOptions {
  readonly scripts?: Partial<Record<FakeQuestion, FakeScript>>
  readonly options?: Readonly<Record<string, unknown>>
  readonly home?: string
  readonly fake?: FakeOauth
  readonly clock?: Clock
  /** Beside config, llm and oauth. */
  readonly packs?: readonly Pack[]
}

const snapshot = async ({ call }: Pick<TestKernel, 'call'>) => (await call(readLogin, { query: {} })).data

export async function scene(t: TestContextLike, given: SceneOptions = {}): Promise<Scene> {
  const fake = given.fake ?? (await fakeOauth(t, given.scripts))
  const clock = given.clock ?? { now: Date.parse('2026-11-20T12:00:00Z') }
  const { login, packs } = withLogin()
  const kernel = await startTestKernel(t, {
    packs: [...packs, ...(given.packs ?? [])],
    now: () => new Date(clock.now),
    config: {
      oauth: { client_id: 'client-1', oauth_host: fake.oauth_host, api_base_url: fake.api_base_url, poll_unit_ms: 1, ...given.options }
    },
    ...(given.home !== undefined && { home: given.home })
  })
  const settled = async () => {
    for (;;) {
      const flow = await snapshot(kernel)
      if (!flow) throw new Error('no flow was started')
      if (flow.status !== 'pending') return flow
    }
  }
  return {
    ...kernel,
    fake,
    clock,
    login: login(),
    settled,
    async logIn() {
      fake.answer('poll', [granted()])
      await kernel.call(startLogin, { body: {} })
      await settled()
    },
    async credential(slot = 'svc-code') {
      try {
        return JSON.parse(await readFile(join(kernel.home, 'credentials', `${slot}.json`), 'utf8')) as Record<string, unknown>
      } catch {
        return undefined // logged out
      }
    }
  }
}

/** The packs of a scene and one that shows the login. */
export function withLogin() {
  let found: (() => readonly LlmLogin[]) | undefined
  const guest = definePack({
    name: 'guest',
    setup(ctx) {
      found = ctx.collect(LlmLogins).items
    }
  })
  const login = (): Login => {
    const only = found?.()[0]
    if (!only) throw new Error('the login is not there')
    return {
      status: (provider_id, reference) => only.status(provider_id, reference),
      accessToken: (provider_id, options = {}) => only.accessToken(provider_id, options)
    }
  }
  return { packs: [config, llm, oauth, guest], login }
}

export { setEnvironment, withEnvironment } from '../../helpers/environment.ts'
