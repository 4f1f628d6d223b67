/** A kernel with everything a conversation needs, a scripted model, and a session in a fresh directory. */
import { cp, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Agent, Agents, TurnHooks } from '../../../features/agent/index.ts'
import agent from '../../../features/agent/pack.ts'
import { AttachmentsSlot } from '../../../features/history/attachments.ts'
import { wireStore } from '../../../features/history/contract.ts'
import { Histories, type HistoryRecord } from '../../../features/history/index.ts'
import { findMedium } from '../../../features/history/media.ts'
import { hasPrompt, historyOpener, readStored, wasClosed } from '../../../features/history/open.ts'
import history from '../../../features/history/pack.ts'
import messages from '../../../features/messages/pack.ts'
import { submitPrompt } from '../../../features/prompts/index.ts'
import prompts from '../../../features/prompts/pack.ts'
import sessionViews from '../../../features/session-views/pack.ts'
import { type AgentHost, createSession, Sessions } from '../../../features/sessions/index.ts'
import sessions from '../../../features/sessions/pack.ts'
import type { ToolOutcome, ToolRunInput } from '../../../features/tools/index.ts'
import { ToolRunner } from '../../../features/tools/index.ts'
import workspaces from '../../../features/workspaces/pack.ts'
import { definePack, defineSlot, type Pack } from '../../../kernel/index.ts'
import { startTestKernel, type TestContextLike, type TestKernel } from '../../../kernel/testing.ts'
import type { ScriptedLlm } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'

export interface Started extends TestKernel {
  readonly cwd: string
  readonly session_id: string
  /** Submits a text and returns the prompt. */
  prompt(text: string, extra?: Record<string, unknown>): Promise<{ prompt_id: string; status: string }>
  /** Resolves when this many turns have ended and settled. */
  settled(count: number): Promise<void>
}

export interface StartOptions {
  readonly now?: () => Date
  readonly home?: string
  readonly session_id?: string
  readonly packs?: readonly Pack[]
  /** In place of the history pack. */
  readonly history?: Pack
  readonly config?: Record<string, Record<string, unknown>>
  /** Gets the lines of the log, from warnings on (with `told` from info on). */
  readonly logged?: string[]
  /** Gets what whoever runs the server is told. */
  readonly told?: string[]
}

export async function startAgent(t: TestContextLike, llm: ScriptedLlm, options: StartOptions = {}): Promise<Started> {
  const cwd = await freshDir()
  const kernel = await startTestKernel(t, {
    packs: [workspaces, sessions, options.history ?? history, llm.pack, agent, prompts, messages, sessionViews, ...(options.packs ?? [])],
    config: { agent: { retry_base_ms: 1 }, ...options.config },
    ...(options.logged
      ? {
          log: {
            level: options.told ? ('info' as const) : ('warn' as const),
            to: { write: (line: string) => void options.logged?.push(line) }
          }
        }
      : {}),
    onOperatorLine: ({ level, text }) => void options.told?.push(`${level}: ${text}`),
    ...(options.now ? { now: options.now } : {}),
    home: options.home ?? (await freshDir()) // another server may use it after this one
  })
  let { session_id } = options
  session_id ??= (await kernel.call(createSession, { body: { metadata: { cwd } } })).data.id
  return {
    ...kernel,
    cwd,
    session_id,
    async prompt(text, extra = {}) {
      const reply = await kernel.call(submitPrompt, { params: { session_id }, body: { content: [{ type: 'text', text }], ...extra } })
      if (reply.code !== 0) throw new Error(`prompt refused: ${reply.code} ${reply.msg}`)
      return reply.data
    },
    async settled(count) {
      const over = new Set(['prompt.completed', 'prompt.aborted'])
      let seen = 0
      await kernel.waitFor(event => over.has(event.type) && event.session_id === session_id && ++seen >= count)
    }
  }
}

/** A pack that uses agents, as tasks, goals and subagents do. */
export interface Insider {
  readonly pack: Pack
  readonly agents: Agents
  readonly sessions: Sessions
  readonly hooks: TurnHooks
  /** The main agent of a session. */
  main(started: Pick<Started, 'session_id'>): Promise<Agent>
}

export function insider(): Insider {
  let services: Pick<Insider, 'agents' | 'sessions' | 'hooks'> | undefined
  const there = () => {
    if (!services) throw new Error('the kernel has not started')
    return services
  }
  return {
    pack: definePack({
      name: 'insider',
      needs: { agents: Agents, sessions: Sessions, hooks: TurnHooks },
      setup(_ctx, given) {
        services = given
      }
    }),
    get agents() {
      return there().agents
    },
    get sessions() {
      return there().sessions
    },
    get hooks() {
      return there().hooks
    },
    main: ({ session_id }) => there().agents.main(session_id)
  }
}

/** The journal of the main agent. */
export async function wireFile({ home }: { readonly home: string }): Promise<string> {
  return join(home, (await readdir(home, { recursive: true })).find(name => name.endsWith('agents/main/wire.jsonl')) ?? '')
}

/** The records of the main agent, as they are on disk. */
export async function wireOf(server: { readonly home: string }): Promise<HistoryRecord[]> {
  const lines = (await readFile(await wireFile(server), 'utf8')).trimEnd().split('\n')
  return lines.map(line => JSON.parse(line) as HistoryRecord)
}

/** What `kill -9` leaves: the files of a running server, without its locks. */
export async function copyOfHome(home: string): Promise<string> {
  const copy = await freshDir()
  // Locks, and files of a write that is under way (`~` in the name), come and go while they are copied.
  const skip = /(^|\/)(lock|instances|kv|server\.token|[^/]*\.lock|[^/]*~[^/]*)$/
  await cp(home, copy, { recursive: true, filter: source => !skip.test(source) })
  return copy
}

/** The history pack on logs of the test's own. */
function historyOn(logOf: Parameters<typeof historyOpener>[1]): Pack {
  const copy = async () => {
    throw new Error('these logs are in memory')
  }
  return definePack({
    name: 'history',
    provides: [Histories],
    setup(ctx) {
      const open = historyOpener(ctx, logOf)
      const slot = defineSlot('history', (agent: AgentHost) => open(agent))
      ctx.slot(slot)
      ctx.slot(AttachmentsSlot)
      ctx.provide(Histories, {
        of: agent => agent.get(slot),
        stored: (dir, spec, known) => readStored(ctx, ctx.storeAt(wireStore, dir), spec, known),
        copy,
        copyContext: copy,
        medium: findMedium,
        attach: (agent, attachment) => agent.get(AttachmentsSlot).add(attachment),
        wasClosed: agent => wasClosed(ctx, agent, agent.store(wireStore)),
        hasPrompt: (agent, prompt_id) => hasPrompt(agent.store(wireStore), prompt_id)
      })
    }
  })
}

/** The history pack on a disk that asks `before` each time: what it waits for, the records wait for; what it throws, the disk refuses. */
export function historyOnDisk(before: (records: readonly HistoryRecord[]) => Promise<void> | void, reading = () => {}): Pack {
  return historyOn(agent => {
    const log = agent.store(wireStore)
    const append: typeof log.append = async (id, ...records) => {
      await before(records as readonly HistoryRecord[])
      return await log.append(id, ...records)
    }
    const scan: typeof log.scan = (...args) => {
      reading()
      return log.scan(...args)
    }
    const own: Partial<typeof log> = { append, scan }
    return new Proxy(log, { get: (target, key) => Reflect.get(own, key) ?? Reflect.get(target, key).bind(target) })
  })
}

/** The history pack, which notes whose journal was opened. */
export function countedHistory(opened: string[]): Pack {
  return historyOn(agent => {
    opened.push(agent.id)
    return agent.store(wireStore)
  })
}

/** A tool runner that answers every call by `run`. */
export function runner(run: (input: ToolRunInput) => Promise<readonly ToolOutcome[]>): Pack {
  return definePack({
    name: 'tools',
    provides: [ToolRunner],
    setup: ctx => ctx.provide(ToolRunner, { list: () => [{ name: 'Echo', description: 'echo', parameters: {} }], run })
  })
}

/** Runs the calls one after the other and reports as the real runner does. */
export function echoRunner(output: (name: string, args: Readonly<Record<string, unknown>>) => string = name => `${name} ran`): Pack {
  return runner(async ({ calls, report }) => {
    const outcomes: ToolOutcome[] = []
    for (const call of calls) {
      const args = JSON.parse(call.arguments) as Record<string, unknown>
      await report({ type: 'started', call, args, description: `Running ${call.name}` })
      const result = { output: output(call.name, args) }
      await report({ type: 'finished', call, result })
      outcomes.push({ call, result })
    }
    return outcomes
  })
}

/** A pack whose tap of the end of a turn waits for something. */
export const waitsAtTurnEnd = (until: Promise<unknown>): Pack =>
  definePack({
    name: 'end',
    needs: { hooks: TurnHooks },
    setup: (ctx, { hooks }) => void ctx.tap(hooks.turnEnd, async () => void (await until))
  })
