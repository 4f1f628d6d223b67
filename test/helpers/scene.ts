/** The full server with a scripted provider, a project directory, and pages on it. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { startTestKernel, type TestKernel, type TestKernelOptions } from '../../kernel/testing.ts'
import { schemaJudge } from './documents.ts'
import { type FakeUpstream, fakeUpstream, type Script } from './fake-upstream.ts'
import { modelConfig } from './model-config.ts'
import { Page, type PageOptions, type PageServer } from './page.ts'
import type { Json } from './page-session.ts'
import { freshDir } from './temp.ts'

interface TestLike {
  after(fn: () => unknown): void
}

export interface Place {
  readonly home: string
  readonly cwd: string
  readonly upstream: FakeUpstream
}

/** A fresh home whose configuration knows the scripted provider as the default model, and a project directory. */
export async function place(t: TestLike, script: Script): Promise<Place> {
  const upstream = await fakeUpstream(t, script)
  const home = await freshDir()
  const cwd = join(home, 'project')
  await mkdir(cwd)
  await writeFile(join(home, 'config.toml'), modelConfig(upstream.url, { more: 'capabilities = ["thinking"]' }))
  return { home, cwd, upstream }
}

export interface Scene extends Place {
  readonly server: TestKernel
  page(options?: PageOptions): Promise<Page>
  /** Another server on the same home, after the first was stopped. */
  again(): Promise<TestKernel>
}

export async function scene(t: TestLike, script: Script, options: Partial<TestKernelOptions> = {}): Promise<Scene> {
  const where = await place(t, script)
  const again = async () =>
    await startTestKernel(t, {
      packs: await loadDefaultPacks(),
      home: where.home,
      config: { agent: { retry_base_ms: 1 } },
      ...options
    })
  const server = await again()
  return { ...where, server, again, page: more => Page.open(t, server, more) }
}

/** Compares frames with the messages of `/asyncapi.json` of a server in another process. */
export async function frameJudge({ url, token }: PageServer): Promise<NonNullable<PageOptions['judge']>> {
  const answer = await fetch(`${url}/asyncapi.json`, { headers: { authorization: `Bearer ${token}` } })
  const document = (await answer.json()) as { components: { messages: Record<string, unknown> } }
  const check = schemaJudge(document)
  return (message, frame) =>
    Object.hasOwn(document.components.messages, message)
      ? check(['components', 'messages', message, 'payload'], frame)
      : 'this message is not in the document'
}

export async function newSession(page: Page, cwd: string): Promise<string> {
  const created = await page.post('/api/v1/sessions', { metadata: { cwd } })
  if (created.code !== 0) throw new Error(`${created.code} ${created.msg}`)
  return created.data.id
}

export async function prompt(page: Page, session_id: string, text: string, more: object = {}): Promise<Json> {
  const answer = await page.post(`/api/v1/sessions/${session_id}/prompts`, { content: [{ type: 'text', text }], ...more })
  if (answer.code !== 0) throw new Error(`${answer.code} ${answer.msg}`)
  return answer.data
}
