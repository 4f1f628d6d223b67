/** Runs the commands of an event side by side, each with one JSON object on its standard input. */
import type { Logger } from '../../kernel/index.ts'
import type { Session } from '../sessions/index.ts'
import type { Shell } from '../tools-shell/index.ts'
import { answerOf } from './answer.ts'
import type { HookAnswer, HookEvent, HookRule } from './contract.ts'
import type { HookRules } from './rules.ts'

const DEFAULT_TIMEOUT_S = 30
/** Between SIGTERM and SIGKILL of a hook that takes too long, ms. */
const KILL_GRACE_MS = 100
/** Events that nobody waits for: so many run at a time, so many more wait. */
const MAX_NOTICES = 16
const MAX_WAITING = 256

export interface HookCall {
  readonly event: HookEvent
  readonly session: Pick<Session, 'id' | 'cwd' | 'state'>
  /** What matchers look at: the tool's name, the prompt. */
  readonly subject?: string
  /** Facts of the event, snake_case; a promise where they have to be looked up, which must not reject. */
  readonly fields?: Readonly<Record<string, unknown>> | Promise<Readonly<Record<string, unknown>>>
  readonly signal?: AbortSignal
}

/** What the commands of an event say together. */
export interface HookSay {
  /** Reasons of those that block; empty: nobody does. */
  readonly blocked: readonly string[]
  readonly messages: readonly string[]
  /** Of the last command that wants other arguments. */
  readonly input?: Readonly<Record<string, unknown>>
}

const nothing: HookSay = { blocked: [], messages: [] }

export interface RunnerPorts {
  readonly rules: HookRules
  readonly shell: () => Shell | undefined
  readonly log: Logger
}

export class HookRunner {
  readonly #ports: RunnerPorts
  #running = 0
  readonly #waiting: HookCall[] = []
  #idle: (() => void)[] = []

  constructor(ports: RunnerPorts) {
    this.#ports = ports
  }

  /** Asks the commands of an event that can block. Without a pack that runs commands, the answer is no. Never rejects. */
  async ask(call: HookCall): Promise<HookSay> {
    const rules = this.#ports.rules.matching(call.event, call.subject ?? '', call.session.cwd)
    if (rules.length === 0) return nothing
    const shell = this.#ports.shell()
    if (!shell)
      return { ...nothing, blocked: [`A hook for ${call.event} is configured, and no pack of this server can run it (tools-shell).`] }
    const answers = await Promise.all(rules.map(rule => this.#run(rule, call, shell)))
    const input = answers.findLast(answer => answer.input)?.input
    return {
      blocked: answers.flatMap(answer => answer.block ?? []),
      messages: answers.flatMap(answer => answer.message ?? []),
      ...(input ? { input } : {})
    }
  }

  /** Tells the commands of an event that has happened; nobody waits for them. */
  tell(call: HookCall): void {
    if (!this.#ports.rules.has(call.event)) return
    if (this.#running >= MAX_NOTICES) {
      if (this.#waiting.push(call) <= MAX_WAITING) return
      const lost = this.#waiting.shift()
      this.#ports.log.warn({ hook_event: lost?.event, session_id: lost?.session.id }, 'hooks are too slow: one was left out')
      return
    }
    this.#running++
    void this.ask(call).then(() => {
      this.#running--
      // Of those that wait some may concern nobody any more.
      while (this.#running < MAX_NOTICES && this.#waiting.length > 0) this.tell(this.#waiting.shift()!)
      if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve()
    })
  }

  /** Resolves when everything that was told has ended. */
  settled(): Promise<void> {
    return this.#running === 0 ? Promise.resolve() : new Promise(resolve => this.#idle.push(resolve))
  }

  async #run(rule: HookRule, { event, session, fields, signal }: HookCall, shell: Shell): Promise<HookAnswer> {
    const about = { hook_event: event, command: rule.command, session_id: session.id }
    const input = {
      hook_event_name: event,
      session_id: session.id,
      session_title: session.state.title,
      client_type: 'server',
      cwd: session.cwd
    }
    const result = await shell.run({
      command: rule.command,
      cwd: rule.cwd ?? session.cwd,
      ...(rule.env ? { env: rule.env } : {}),
      input: `${JSON.stringify({ ...input, ...(await fields) })}\n`,
      timeout_ms: (rule.timeout ?? DEFAULT_TIMEOUT_S) * 1000,
      kill_grace_ms: KILL_GRACE_MS,
      ...(signal ? { signal } : {})
    })
    if (result.trouble !== undefined && !signal?.aborted) this.#ports.log.warn({ ...about, trouble: result.trouble }, 'a hook failed')
    else if (result.code !== 0 && result.code !== 2) this.#ports.log.warn({ ...about, code: result.code }, 'a hook failed')
    return answerOf(result, event)
  }
}
