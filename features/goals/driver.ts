/** Keeps an agent at its goal: turn after turn while the goal is active and within its budgets. */
import type { Agent, Agents, NoticeFate, StepInjector, TurnInfo } from '../agent/index.ts'
import type { History, Origin } from '../history/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { ToolCallContext, ToolDenial } from '../tools/index.ts'
import type { GoalKeeper } from './keeper.ts'
import { continuation, goalReminder, goneReminder, graceRefusal, graceReminder, progressReminder, restingReminder } from './texts.ts'

const origin: Origin = { kind: 'system_trigger', name: 'goal_continuation' }

export class GoalDriver {
  readonly keeper: GoalKeeper
  readonly #history: History
  readonly #agents: Agents
  /** Id of the continuation that waits for its turn. */
  #waiting: string | undefined
  /** The newest turn, and the signal that cancels it. */
  #turn: Pick<TurnInfo, 'turn_id' | 'signal'> | undefined
  /** The turn in which the goal was resumed while it was being cancelled. */
  #resumedIn: number | undefined
  /** The turn that may take one more step to write its end, and why. */
  #grace: { readonly turn_id: number; readonly step: number; readonly limit: string } | undefined

  constructor(keeper: GoalKeeper, history: History, agents: Agents) {
    this.keeper = keeper
    this.#history = history
    this.#agents = agents
    keeper.onDeadline = () => void this.#outOfTime()
  }

  close(): void {
    this.keeper.close()
  }

  /** At a step boundary. */
  stepBegin({ turn_id, step, signal }: TurnInfo): 'stop' | undefined | Promise<undefined> {
    const { keeper } = this
    this.#turn = { turn_id, signal }
    const active = keeper.goal?.status === 'active'
    if (step === 1) {
      const continues = this.#continues()
      if (!active) return continues ? 'stop' : undefined
      return keeper.join(turn_id, true).then(() => undefined)
    }
    if (this.#grace?.turn_id === turn_id && step > this.#grace.step) return 'stop'
    const limit = keeper.drives(turn_id) ? keeper.limit(true) : undefined
    if (limit !== undefined) this.#grace = { turn_id, step, limit }
    return undefined
  }

  /** Tools do not run in the step in which the agent writes the end. */
  guard({ tool, env }: ToolCallContext): ToolDenial | undefined {
    if (this.#grace?.turn_id !== env.turn_id || tool.name === 'UpdateGoal') return undefined
    return { kind: 'deny', output: graceRefusal(this.#grace.limit) }
  }

  turnEnd({ turn_id }: TurnInfo): Promise<void> | undefined {
    const grace = this.#grace?.turn_id === turn_id ? this.#grace.limit : undefined
    this.#grace = undefined
    // One that was aborted or failed before its first step was to work on the goal, too.
    const isBegun = this.#turn?.turn_id === turn_id
    if (!isBegun) this.#continues()
    const works = this.keeper.drives(turn_id) || !isBegun
    return works && this.keeper.goal?.status === 'active' ? this.#after(turn_id, grace) : undefined
  }

  /** Whether the newest turn is the continuation that waited: it does not wait any more. */
  #continues(): boolean {
    const continues = this.#history.lastTurn()?.origin.name === origin.name
    if (continues) this.#waiting = undefined
    return continues
  }

  /** A turn that worked on the goal has ended. `grace`: the limit for which it wrote its end. */
  async #after(turn_id: number, grace: string | undefined): Promise<void> {
    const { keeper } = this
    const turn = this.#history.lastTurn()
    const { reason = 'completed', interrupt_reason, error } = turn ?? {}
    const limit = grace ?? keeper.limit(false)
    if (limit !== undefined) return keeper.block('runtime', limit)
    const resumed = this.#resumedIn === turn_id
    if (reason === 'cancelled' && !resumed) {
      if (interrupt_reason === 'user_cancelled') await keeper.pause('user', 'the user interrupted the turn')
      return // a shutdown: the next start pauses it
    }
    if (reason === 'failed' && interrupt_reason !== 'max_steps') return keeper.pause('runtime', pauseReason(error?.code))
    if (!keeper.drives(turn_id)) return keeper.pause('runtime', 'the turn was ended before its first step')
    await this.#goOn(`${turn_id}`)
  }

  /** Of the user: the next turn begins with it, behind one that runs at once. */
  async create(objective: string): Promise<void> {
    await this.keeper.create({ objective }, 'user')
    await this.#behindRunning()
  }

  /** Of the user: goes on, at once when the agent is idle. */
  async resume(): Promise<void> {
    const { keeper } = this
    const was = keeper.goal?.status
    await keeper.resume('user')
    if (!(await this.#behindRunning()) && was !== 'active') await this.#goOn(keeper.newId())
  }

  /** The goal goes on behind the turn that runs, which is none of its budget; false: none runs. */
  async #behindRunning(): Promise<boolean> {
    const { keeper } = this
    const turn_id = this.#history.lastTurn()?.turn_id
    if (turn_id === undefined || !keeper.host.session.work.activeTurns().includes(keeper.host.id)) return false
    // An abort that comes later is meant: it pauses the goal.
    if (this.#turn?.turn_id === turn_id && this.#turn.signal.aborted) this.#resumedIn = turn_id
    if (!keeper.drives(turn_id)) await keeper.join(turn_id, false)
    return true
  }

  async pause(): Promise<void> {
    await this.keeper.pause('user')
    this.#resumedIn = undefined
    await this.#holdBack()
  }

  /** Nobody works on it any more, until the user says so. */
  async rest(why: string): Promise<void> {
    if (this.keeper.goal?.status === 'active') await this.keeper.pause('system', why)
    this.#resumedIn = undefined
    await this.#holdBack()
  }

  async cancel(): Promise<void> {
    const { keeper } = this
    const turn_id = this.#history.lastTurn()?.turn_id
    const driven = turn_id !== undefined && keeper.drives(turn_id)
    await keeper.clear('user')
    await this.#holdBack()
    if (driven && keeper.host.session.work.activeTurns().includes(keeper.host.id)) await (await this.#agent()).abort(true)
  }

  /** What the model is to be told before a step. */
  remind({ turn_id, step }: TurnInfo): ReturnType<StepInjector['inject']> {
    if (this.#grace?.turn_id === turn_id && this.#grace.step === step)
      return { text: graceReminder(this.#grace.limit), facts: { status: 'ending' } }
    const last = this.#history.reminder('goal')
    const goal = this.keeper.snapshot()
    if (goal?.status === 'active') {
      const known = last?.goal_id === goal.goalId && last.status === 'active'
      const continued = this.#history.lastTurn()?.origin.name === origin.name
      if (known && step > 1) return undefined
      // What a continuation says was written when it was queued, perhaps turns ago.
      return { text: known && continued ? progressReminder(goal) : goalReminder(goal), facts: { goal_id: goal.goalId, status: 'active' } }
    }
    if (last === undefined || last.status === (goal?.status ?? 'none')) return undefined
    return goal
      ? { text: restingReminder(goal.status), facts: { goal_id: goal.goalId, status: goal.status } }
      : { text: goneReminder, facts: { status: 'none' } }
  }

  async #goOn(id: string): Promise<void> {
    const goal = this.keeper.snapshot()
    if (!goal || this.#waiting !== undefined) return
    const notice = `${goal.goalId}_${id}`
    this.#waiting = notice
    let fate: NoticeFate | undefined
    try {
      fate = await (await this.#agent()).inject({ id: notice, content: continuation(goal), origin, admission: 'newTurn' })
    } finally {
      // One that the disk refused does not come, either: the next turn goes on.
      if ((fate === undefined || fate === 'known') && this.#waiting === notice) this.#waiting = undefined
    }
  }

  /** A continuation that waits does not come. */
  async #holdBack(): Promise<void> {
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting !== undefined) await (await this.#agent()).withdrawNotice(waiting)
  }

  async #outOfTime(): Promise<void> {
    const { keeper } = this
    const limit = keeper.limit(true)
    if (limit === undefined) return
    const turn_id = this.#history.lastTurn()?.turn_id
    try {
      await keeper.block('runtime', limit)
      await this.#holdBack()
    } catch {
      // The disk refuses, or the goal is gone by now: the turn that works on it ends in any case, and its end tries again.
    }
    if (turn_id !== undefined && keeper.drives(turn_id)) await (await this.#agent()).abort(false)
  }

  #agent(): Promise<Agent> {
    return this.#agents.of(this.keeper.host)
  }
}

/** Why a goal pauses when its turn failed, by the code of the engine error. */
function pauseReason(code = 'internal'): string {
  const known: Readonly<Record<string, string>> = {
    'provider.rate_limit': 'the provider limits the rate of requests',
    'provider.overloaded': 'the provider is overloaded',
    'provider.connection_error': 'the provider cannot be reached',
    'provider.auth_error': 'the provider refuses the credential',
    'auth.login_required': 'the provider refuses the credential',
    'provider.filtered': 'the provider withheld the answer',
    'model.not_configured': 'no model is configured',
    'config.invalid': 'the configuration of the model does not work'
  }
  return known[code] ?? (code.startsWith('provider.') ? 'the provider answered with an error' : 'the turn failed')
}

/** Goals belong to main agents. */
export const mayHaveGoal = (agent: AgentHost): boolean => agent.record.type === 'main'
