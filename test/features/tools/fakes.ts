/** Small stand-ins for sessions and agents, and a runner with scripted tools. */
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import type { AgentHost, AgentRecord, Session, SessionState, SessionWork } from '../../../features/sessions/index.ts'
import { Registry } from '../../../features/tools/registry.ts'
import { createRunner } from '../../../features/tools/runner.ts'
import { createToolHooks, type ToolAuthority, type ToolHooks, type ToolReport } from '../../../features/tools/service.ts'
import type { Tool, ToolAccess, ToolPolicy, ToolResult } from '../../../features/tools/tool.ts'
import {
  type Accounts,
  type Contribution,
  type Hosts,
  SlotHost,
  type StoreOf,
  type StoreSpec,
  type TObject,
  Type
} from '../../../kernel/index.ts'
import { testEnvironment } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'

export interface TestLike {
  after(fn: () => unknown): void
}

export const silent = pino({ level: 'silent' })

/** Nobody keeps them. */
const accounts: Accounts = { onAccountOf: (_pack, _what, work) => work(), blame: () => undefined }

export async function temporary(): Promise<string> {
  const dir = await realpath(await freshDir())
  return dir
}

export class FakeSession extends SlotHost implements Session {
  readonly id: string
  readonly workspace_id = 'wd_fake'
  readonly cwd: string
  readonly dir: string
  readonly writable = true
  readonly state: SessionState
  /** What the work was told, in order. */
  readonly told: string[] = []
  /** Those of the kernel that the slots belong to; its own for a session without a kernel. */
  readonly hosts: Hosts
  readonly #agents: FakeAgent[] = []

  assertWritable(): void {}

  keep(): () => void {
    return () => undefined
  }

  constructor(place: { readonly cwd: string; readonly dir?: string; readonly id?: string; readonly hosts?: Hosts }) {
    const hosts = place.hosts ?? testEnvironment().hosts
    super(hosts)
    this.hosts = hosts
    this.id = place.id ?? 'session_a'
    this.cwd = place.cwd
    this.dir = place.dir ?? join(place.cwd, '.session')
    const at = '2026-01-01T00:00:00.000Z'
    this.state = {
      id: this.id,
      version: 1,
      workspace_id: this.workspace_id,
      cwd: this.cwd,
      title: '',
      title_kind: 'replaceable',
      created_at: at,
      updated_at: at,
      archived: false,
      agents: {},
      metadata: {}
    }
  }

  readonly work: SessionWork = {
    busy: false,
    main_turn_active: false,
    pending_interaction: 'none',
    turnStarted: () => undefined,
    turnEnded: () => undefined,
    rests: () => undefined,
    activeTurns: () => [],
    pending: (kind, change) => this.told.push(`${kind} ${change > 0 ? '+1' : '-1'}`),
    background: () => undefined,
    pendingLeft: () => undefined,
    announce: () => undefined,
    isHeard: true,
    heard: () => undefined
  }

  add(id: string, record: AgentRecord = { type: 'main' }): FakeAgent {
    const agent = new FakeAgent(this, id, record)
    this.#agents.push(agent)
    return agent
  }

  agents(): readonly AgentHost[] {
    return this.#agents
  }
  agent(id: string): AgentHost | undefined {
    return this.#agents.find(agent => agent.id === id)
  }
  async main(): Promise<AgentHost> {
    return this.agent('main') ?? this.add('main')
  }
  askMain<T>(ask: (agent: AgentHost) => T): T {
    return ask(this.agent('main') ?? new FakeAgent(this, 'main', { type: 'main' }))
  }
  createAgent(): Promise<AgentHost> {
    throw new Error('not used')
  }
  async update(): Promise<SessionState> {
    return this.state
  }
  promptsUndone(): void {}

  async entitle(): Promise<void> {}

  promptSubmitted(): void {}
  leaves(): void {}
  store<S extends StoreSpec>(): StoreOf<S> {
    throw new Error('no stores here')
  }
}

export class FakeAgent extends SlotHost implements AgentHost {
  readonly id: string
  readonly record: AgentRecord
  readonly session: FakeSession
  readonly dir: string

  constructor(session: FakeSession, id: string, record: AgentRecord) {
    super(session.hosts)
    this.session = session
    this.id = id
    this.record = record
    this.dir = join(session.dir, 'agents', id)
  }

  store<S extends StoreSpec>(): StoreOf<S> {
    throw new Error('no stores here')
  }
}

export async function fakeAgent(t: TestLike, place?: { readonly cwd?: string; readonly hosts?: Hosts }): Promise<FakeAgent> {
  const session = new FakeSession({ ...place, cwd: place?.cwd ?? (await temporary()), dir: await temporary() })
  const agent = session.add('main')
  t.after(async () => {
    await agent.closeHost()
    await agent.session.closeHost()
  })
  return agent
}

export interface Scene {
  readonly agent: FakeAgent
  readonly hooks: ToolHooks
  /** Reports as `started A`, `finished A`, ... by call id. */
  readonly log: string[]
  readonly reports: ToolReport[]
  /** Runs calls given as `[id, tool name, argument text]`. */
  run(calls: readonly (readonly [string, string, string?])[], options?: { signal?: AbortSignal; turn_id?: number }): Promise<ToolResult[]>
}

/** Permits every call. */
export const permissive: ToolAuthority = { permit: async () => ({ kind: 'run' }), readable: async () => () => true }

/** A runner over these tools, for one fresh agent; the authority permits everything. */
export async function scene(
  t: TestLike,
  tools: readonly Tool[],
  options: {
    readonly policies?: readonly ToolPolicy[]
    readonly abandonMs?: number
    readonly callLimitMs?: number
    readonly hookLimitMs?: number
    readonly agent?: FakeAgent
    readonly authority?: Partial<ToolAuthority>
  } = {}
): Promise<Scene> {
  const agent = options.agent ?? (await fakeAgent(t))
  const hooks = createToolHooks()
  const log: string[] = []
  const reports: ToolReport[] = []
  let ids = 0
  const runner = createRunner({
    registry: new Registry({
      tools: { entries: () => tools.map(item => contribution('tools', item)) },
      sets: { entries: () => [] },
      policies: { entries: () => (options.policies ?? []).map(item => contribution('rules', item)) },
      accounts,
      absence: () => undefined
    }),
    hooks,
    authority: () => permissive,
    log: silent,
    now: () => new Date(0),
    newId: () => `id${ids++}`,
    abandonMs: options.abandonMs ?? 2_000,
    callLimitMs: options.callLimitMs ?? 0,
    hookLimitMs: options.hookLimitMs ?? 60_000
  })
  return {
    agent,
    hooks,
    log,
    reports,
    async run(calls, { signal = new AbortController().signal, turn_id = 0 } = {}) {
      const outcomes = await runner.run({
        agent,
        turn_id,
        calls: calls.map(([id, name, args]) => ({ id, name, arguments: args ?? '' })),
        signal,
        report(event) {
          reports.push(event)
          log.push(`${event.type} ${event.call.id}`)
        }
      })
      return outcomes.map(outcome => outcome.result)
    }
  }
}

export interface ScriptedTool {
  readonly name: string
  readonly parameters?: TObject
  readonly accesses?: (args: Record<string, unknown>) => readonly ToolAccess[]
  readonly run?: (args: Record<string, unknown>, signal: AbortSignal) => Promise<ToolResult> | ToolResult
}

/** A tool that accepts `{ path?: string }` and answers `<name> <path>`. */
export function scripted({ name, parameters, accesses, run }: ScriptedTool): Tool {
  return {
    name,
    description: `${name} for tests`,
    parameters: parameters ?? Type.Object({ path: Type.Optional(Type.String()) }),
    source: 'builtin',
    prepare: (args: Record<string, unknown>) => ({
      description: `${name}: ${args.path ?? ''}`,
      accesses: accesses?.(args) ?? [],
      run: async (_progress, signal) => (run ? run(args, signal) : { output: `${name} ${args.path ?? ''}` })
    })
  }
}

/** As a collection tells it; it never leaves. */
export const contribution = <T>(pack: string, item: T): Contribution<T> => ({ pack, item, signal: new AbortController().signal })
