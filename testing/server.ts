/** The full server for the test of a pack: its agents work with a scripted model, in a session on a directory of their own. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promptAborted, promptCompleted, toolResult } from '../features/agent/index.ts'
import { loadDefaultPacks } from '../features/default-packs.ts'
import { approvalRequested, resolveApproval } from '../features/interactions/index.ts'
import { submitPrompt } from '../features/prompts/index.ts'
import { createSession } from '../features/sessions/index.ts'
import type { EmittedEvent } from '../kernel/realtime/types.ts'
import { startTestKernel, type TestContextLike, type TestKernel, type TestKernelOptions } from '../kernel/testing.ts'
import { type ScriptedModel, scriptedModel } from './scripted-model.ts'

export interface TestServerOptions extends Partial<TestKernelOptions> {
  /** What the agents talk to; default: a model that says `ok`. */
  readonly model?: ScriptedModel
  /** Default packs that are left out. */
  readonly without?: readonly string[]
  /** What becomes of every approval that is asked for. Default: they wait, as they do for people. */
  readonly approvals?: 'approved' | 'rejected'
}

/** What came of a prompt. */
export interface PromptEnd {
  /** `aborted`: the user ended it. `blocked`: a pack refused it before its turn. */
  readonly reason: 'completed' | 'failed' | 'blocked' | 'aborted'
  /** Last text of the model in it. */
  readonly text: string
  /** Results of tool calls, in order. */
  readonly results: readonly { readonly tool_call_id: string; readonly output: string; readonly is_error: boolean }[]
}

export interface TestServer extends TestKernel {
  readonly model: ScriptedModel
  /** Working directory of the session; empty. */
  readonly cwd: string
  readonly session_id: string
  /** Submits a text (`extra`: further fields of the body); rejects when it is refused. `ended` is its end. */
  submit(text: string, extra?: object): Promise<{ readonly prompt_id: string; readonly ended: Promise<PromptEnd> }>
  /** Submits a text and resolves when all that follows from it is over. */
  prompt(text: string, extra?: object): Promise<PromptEnd>
}

/** Starts the default packs and yours (`packs`); the rest is as with `startTestKernel`. */
export async function startTestServer(t: TestContextLike, options: TestServerOptions = {}): Promise<TestServer> {
  const { model = scriptedModel(), without = [], approvals, packs = [], config, ...given } = options
  const server = await startTestKernel(t, {
    ...given,
    packs: [...(await loadDefaultPacks(without)), model.pack, ...packs],
    config: { agent: { retry_base_ms: 1 }, ...config }
  })
  const cwd = await mkdtemp(join(tmpdir(), 'svc-code-test-'))
  t.after(() => rm(cwd, { recursive: true, force: true, maxRetries: 3 }))
  const { data, code, msg } = await server.call(createSession, { body: { metadata: { cwd } } })
  if (code !== 0) throw new Error(`no session: ${code} ${msg}`)
  const session_id = data.id
  if (approvals) {
    server.kernel.hub.on(approvalRequested.type, ({ payload }) => {
      const { approval_id } = payload as { approval_id: string }
      void server.call(resolveApproval, { params: { session_id, approval_id }, body: { decision: approvals } })
    })
  }
  const submit: TestServer['submit'] = async (text, extra = {}) => {
    const from = server.events.length
    const asked = await server.call(submitPrompt, { params: { session_id }, body: { content: [{ type: 'text', text }], ...extra } })
    if (asked.code !== 0) throw new Error(`the prompt was refused: ${asked.code} ${asked.msg}`)
    const { prompt_id } = asked.data
    const isEnd = (event: EmittedEvent) =>
      (event.type === promptCompleted.type || event.type === promptAborted.type) &&
      (event.payload as { promptId: string }).promptId === prompt_id
    return { prompt_id, ended: server.waitFor(isEnd).then(end => endOf(end, server.events.slice(from))) }
  }
  return { ...server, model, cwd, session_id, submit, prompt: async (text, extra) => await (await submit(text, extra)).ended }
}

type Told = TestKernel['events'][number]

function endOf({ type, payload }: EmittedEvent, events: readonly Told[]): PromptEnd {
  const of = <T>(wanted: string) => events.flatMap(event => (event.type === wanted ? [event.payload as T] : []))
  const { reason = 'completed' } = payload as { reason?: 'completed' | 'failed' | 'blocked' }
  const deltas = events.slice(events.findLastIndex(event => event.type === 'turn.step.started'))
  return {
    reason: type === promptAborted.type ? 'aborted' : reason,
    text: deltas.flatMap(event => (event.type === 'assistant.delta' ? (event.payload as { delta: string }).delta : [])).join(''),
    results: of<{ toolCallId: string; output: unknown; isError?: boolean }>(toolResult.type).map(({ toolCallId, output, isError }) => ({
      tool_call_id: toolCallId,
      output: typeof output === 'string' ? output : JSON.stringify(output),
      is_error: isError === true
    }))
  }
}
