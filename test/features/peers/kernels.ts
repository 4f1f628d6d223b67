/** Several full servers of this process on one home, with a scripted model. */
import { loadDefaultPacks } from '../../../features/default-packs.ts'
import type { Pack } from '../../../kernel/index.ts'
import { startTestKernel, type TestKernel } from '../../../kernel/testing.ts'
import type { FakeUpstream, Script } from '../../helpers/fake-upstream.ts'
import { place } from '../../helpers/scene.ts'

export interface Kernels {
  readonly home: string
  readonly cwd: string
  readonly upstream: FakeUpstream
  readonly servers: readonly TestKernel[]
  /** One more. */
  more(): Promise<TestKernel>
}

interface TestLike {
  after(fn: () => unknown): void
}

/** `count` servers that know each other, with `extra` packs beside the usual ones and `sessions` as the options of that pack. */
export async function kernels(
  t: TestLike,
  script: Script,
  count = 2,
  extra: readonly Pack[] = [],
  sessions: Readonly<Record<string, unknown>> = {}
): Promise<Kernels> {
  const { home, cwd, upstream } = await place(t, script)
  const more = async () =>
    await startTestKernel(t, {
      packs: [...(await loadDefaultPacks()), ...extra],
      home,
      config: { agent: { retry_base_ms: 1 }, sessions: { idle_ms: 0, ...sessions } }
    })
  const servers: TestKernel[] = []
  while (servers.length < count) servers.push(await more())
  return { home, cwd, upstream, servers, more }
}

export async function newSession(server: Pick<TestKernel, 'rest'>, cwd: string): Promise<string> {
  const { code, msg, data } = await server.rest.json('POST', '/api/v1/sessions', { metadata: { cwd } })
  if (code !== 0) throw new Error(`${code} ${msg}`)
  return (data as { id: string }).id
}

export async function prompt(server: TestKernel, id: string, text: string): Promise<string> {
  const { code, msg, data } = await server.rest.json('POST', `/api/v1/sessions/${id}/prompts`, { content: [{ type: 'text', text }] })
  if (code !== 0) throw new Error(`${code} ${msg}`)
  return (data as { prompt_id: string }).prompt_id
}

/** Asks until it fits; the time limit of the test ends it otherwise. */
export async function until<T>(ask: () => Promise<T>, fits: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await ask()
    if (fits(value)) return value
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}
