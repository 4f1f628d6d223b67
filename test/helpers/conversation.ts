/** The whole server with a scripted provider, and a session whose turns make the tool calls that the test asks for. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import type { Pack } from '../../kernel/index.ts'
import { type Envelope, startTestKernel, type TestContextLike, type TestKernel } from '../../kernel/testing.ts'
import { fakeUpstream, type Step } from './fake-upstream.ts'
import { freshDir } from './temp.ts'

export type Call = readonly [tool: string, args: Readonly<Record<string, unknown>>]
/** An envelope whose data the test knows. */
// biome-ignore lint/suspicious/noExplicitAny: tests of the wire look into replies of every shape
export type Reply = Omit<Envelope, 'data'> & { readonly data: any }
type Answer = Readonly<Record<string, unknown>>

export interface Turn {
  /** `action` of every approval that was asked for, in order. */
  readonly asked: string[]
  /** Results in the order of the calls. */
  readonly results: { readonly output: string; readonly is_error: boolean }[]
}

export interface ConversationOptions {
  /** Added to config.toml after the provider and its model `m`. */
  readonly toml?: string
  readonly home?: string
  readonly cwd?: string
  readonly session_id?: string
  /** The packs of the server, made from the default ones. */
  readonly packs?: (defaults: readonly Pack[]) => readonly Pack[]
}

export interface Conversation extends TestKernel {
  readonly cwd: string
  readonly session_id: string
  /** A request below /api/v1. */
  api(method: string, path: string, body?: unknown): Promise<Reply>
  /** One turn with these calls in one response; approvals get the answer (default: approved once). */
  turn(calls: readonly Call[], extra?: Record<string, unknown>, answer?: Answer): Promise<Turn>
  /** Submits a prompt whose turn plays these steps and goes on with "done". */
  prompt(steps: readonly Step[], extra?: Record<string, unknown>): Promise<Reply>
  readonly upstream: Awaited<ReturnType<typeof fakeUpstream>>
}

export async function conversation(t: TestContextLike, options: ConversationOptions = {}): Promise<Conversation> {
  const home = options.home ?? (await freshDir())
  const cwd = options.cwd ?? (await freshDir())
  const plans: (readonly Step[])[] = []
  const upstream = await fakeUpstream(t, body => {
    const last = (body.messages as { role: string }[]).at(-1)
    return last?.role === 'tool' ? [{ text: 'done' }] : (plans.shift() ?? [{ text: 'done' }])
  })
  const provider = `[providers.p]\ntype = "compat_chat"\nbase_url = "${upstream.url}"\napi_key = "k"\n`
  const model = '[models.m]\nprovider = "p"\nmodel = "x"\nmax_context_size = 100000\n'
  await writeFile(join(home, 'config.toml'), `default_model = "m"\n${options.toml ?? ''}\n${provider}${model}`)
  const kernel = await startTestKernel(t, { packs: (options.packs ?? same)(await loadDefaultPacks()), home })
  const api = (method: string, path: string, body?: unknown): Promise<Reply> => kernel.rest.json(method, `/api/v1${path}`, body)
  const session_id = options.session_id ?? (await api('POST', '/sessions', { metadata: { cwd } })).data.id
  const seen = new Set<string>()

  const prompt = (steps: readonly Step[], extra = {}) => {
    plans.push(steps)
    return api('POST', `/sessions/${session_id}/prompts`, { content: [{ type: 'text', text: 'go' }], ...extra })
  }
  return {
    ...kernel,
    cwd,
    session_id,
    upstream,
    api,
    prompt,
    async turn(calls, extra = {}, answer = { decision: 'approved' }) {
      const ids = calls.map(() => `call_${plans.length}_${Math.random().toString(36).slice(2)}`)
      const submitted = await prompt([{ tools: calls.map(([name, args], at) => ({ name, args, id: ids[at] ?? null })) }], extra)
      if (submitted.code !== 0) throw new Error(`prompt refused: ${submitted.code} ${submitted.msg}`)
      const { prompt_id } = submitted.data
      const over = kernel
        .waitFor(event => /^prompt\.(completed|aborted)$/.test(event.type) && fieldOf(event.payload, 'promptId') === prompt_id)
        .then(() => undefined)
      const asked: string[] = []
      for (;;) {
        const fresh = (payload: unknown) => !seen.has(fieldOf(payload, 'approval_id'))
        const request = await Promise.race([
          kernel.waitFor(event => event.type === 'event.approval.requested' && fresh(event.payload)),
          over
        ])
        if (!request) break
        const approval_id = fieldOf(request.payload, 'approval_id')
        seen.add(approval_id)
        asked.push(fieldOf(request.payload, 'action'))
        await api('POST', `/sessions/${session_id}/approvals/${approval_id}`, answer)
      }
      const { items } = (await api('GET', `/sessions/${session_id}/messages?page_size=100&role=tool`)).data as {
        items: { content: { tool_call_id: string; output: unknown; is_error?: boolean }[] }[]
      }
      const results = ids.map(id => {
        const part = items.flatMap(item => item.content).find(each => each.tool_call_id === id)
        return { output: String(part?.output), is_error: part?.is_error === true }
      })
      return { asked, results }
    }
  }
}

const same = (packs: readonly Pack[]) => packs

function fieldOf(payload: unknown, name: string): string {
  return String((payload as Record<string, unknown>)[name])
}
