/** The goal of one main agent: every change on record before it counts, one after the other. */
import { AppError, headOf, inOrder, longestMs } from '../../kernel/index.ts'
import type { History, Tracked } from '../history/index.ts'
import type { ModelPrice } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import {
  type Actor,
  type GoalChange,
  GoalEmpty,
  GoalExists,
  GoalMissing,
  GoalNotPausable,
  GoalNotResumable,
  type GoalSnapshot,
  GoalTooLong,
  MAX_OBJECTIVE
} from './contract.ts'
import {
  type Budget,
  costOfGoal,
  type Goal,
  type GoalState,
  goalRecord,
  goalState,
  goalTurn,
  reachedLimit,
  snapshotOf,
  wallClockOf
} from './goal.ts'

export interface KeeperPorts {
  readonly now: () => Date
  readonly newId: () => string
  readonly price: (alias: string) => ModelPrice | undefined
}

export interface NewGoal {
  readonly objective: string
  readonly criterion?: string
  /** In place of the goal that there is. */
  readonly replace?: boolean
}

export class GoalKeeper {
  readonly host: AgentHost
  readonly #history: History
  readonly #state: Tracked<GoalState>
  readonly #ports: KeeperPorts
  readonly #inOrder = inOrder()
  #deadline: NodeJS.Timeout | undefined
  /** Lets the session be unloaded. */
  #letGo: (() => void) | undefined
  /** Called when the time budget runs out. */
  onDeadline = () => {}

  private constructor(host: AgentHost, history: History, state: Tracked<GoalState>, ports: KeeperPorts) {
    this.host = host
    this.#history = history
    this.#state = state
    this.#ports = ports
  }

  /** A goal that an earlier process left active is paused: nobody works on it without being told. */
  static async open(host: AgentHost, history: History, ports: KeeperPorts): Promise<GoalKeeper> {
    const keeper = new GoalKeeper(host, history, await history.track(goalState), ports)
    const { goal, seen } = keeper.#state.value
    if (goal?.status === 'active' && host.session.writable) {
      const paused: Goal = { ...rested(goal, seen), status: 'paused', reason: 'the server was restarted' }
      await keeper.#write(paused, { kind: 'lifecycle', status: 'paused', reason: 'the server was restarted', actor: 'system' })
    }
    return keeper
  }

  newId(): string {
    return this.#ports.newId()
  }

  close(): void {
    clearTimeout(this.#deadline)
    this.#letGo?.()
  }

  get goal(): Goal | undefined {
    return this.#state.value.goal
  }

  snapshot(): GoalSnapshot | undefined {
    const { goal } = this.#state.value
    return goal && snapshotOf(goal, this.#now(), costOfGoal(goal, this.#ports.price))
  }

  /** The turn works on the goal that there is now. */
  drives(turn_id: number): boolean {
    const { goal, turn } = this.#state.value
    return goal !== undefined && turn?.turn_id === turn_id && turn.goal_id === goal.goal_id
  }

  /** The turn works on a goal that is not there any more. */
  drove(turn_id: number): boolean {
    const { turn } = this.#state.value
    return turn?.turn_id === turn_id && !this.drives(turn_id)
  }

  /** Of an active goal: which of its limits is reached. */
  limit(midTurn: boolean): string | undefined {
    const snapshot = this.snapshot()
    return snapshot?.status === 'active' ? reachedLimit(snapshot, { midTurn }) : undefined
  }

  /** Notes that a turn works on the goal. `counts`: against its budget of turns. */
  join(turn_id: number, counts: boolean): Promise<void> {
    return this.#inOrder(async () => {
      const { goal } = this.#state.value
      if (!goal) return
      const told = counts ? { goal: this.#priced({ ...goal, turns: goal.turns + 1 }) } : {}
      await this.#history.append(goalTurn.of({ goal_id: goal.goal_id, turn_id, counts, ...told }))
    })
  }

  /** What keeps a goal from being made now. Throws GoalEmpty, GoalTooLong; GoalExists unless it replaces. */
  checkNew({ objective, replace }: NewGoal): void {
    const length = objective.trim().length
    if (length === 0) throw new AppError(GoalEmpty)
    if (length > MAX_OBJECTIVE) throw new AppError(GoalTooLong)
    if (this.goal && !replace) throw new AppError(GoalExists)
  }

  /** Throws what `checkNew` throws. */
  create(given: NewGoal, actor: Actor): Promise<void> {
    return this.#inOrder(async () => {
      this.checkNew(given)
      const objective = given.objective.trim()
      const { criterion } = given
      const until = headOf(criterion?.trim() ?? '', MAX_OBJECTIVE)
      const goal: Goal = {
        goal_id: `goal_${this.#ports.newId()}`,
        objective,
        ...(until === '' ? {} : { criterion: until }),
        status: 'active',
        turns: 0,
        usage: {},
        wall_clock_ms: 0,
        since: this.#now(),
        budget: {}
      }
      await this.#write(goal, undefined, actor)
    })
  }

  /** A paused one stays so. Throws GoalMissing, GoalNotPausable. */
  pause(actor: Actor, reason?: string): Promise<void> {
    return this.#change(goal => {
      if (goal.status === 'paused') return undefined
      if (goal.status !== 'active') throw new AppError(GoalNotPausable)
      return [{ ...rested(goal, this.#now()), status: 'paused', ...(reason === undefined ? {} : { reason }) }, reason]
    }, actor)
  }

  /** An active one stays so. Throws GoalMissing, GoalNotResumable. */
  resume(actor: Actor): Promise<void> {
    return this.#change(goal => {
      if (goal.status === 'active') return undefined
      const { reason: _reason, ...rest } = goal
      const active: Goal = { ...rest, status: 'active', since: this.#now() }
      const limit = reachedLimit(snapshotOf(active, this.#now(), costOfGoal(active, this.#ports.price)), { midTurn: false })
      if (goal.status === 'complete' || limit !== undefined)
        throw new AppError(GoalNotResumable, limit === undefined ? {} : { message: `the goal cannot be resumed: ${limit}` })
      return [active]
    }, actor)
  }

  /** It does not go on by itself. Throws GoalMissing. */
  block(actor: Actor, reason: string): Promise<void> {
    return this.#change(
      goal => (goal.status === 'blocked' ? undefined : [{ ...rested(goal, this.#now()), status: 'blocked', reason }, reason]),
      actor
    )
  }

  /** It is reached: told once more, then there is none. Throws GoalMissing. */
  complete(actor: Actor, reason?: string): Promise<void> {
    return this.#inOrder(async () => {
      const goal = this.#goal()
      const done: Goal = { ...rested(goal, this.#now()), status: 'complete', ...(reason === undefined ? {} : { reason }) }
      const { turnsUsed, tokensUsed, wallClockMs } = snapshotOf(done, this.#now(), undefined)
      const stats = { turnsUsed, tokensUsed, wallClockMs }
      const change = { kind: 'completion', status: 'complete', ...(reason === undefined ? {} : { reason }), stats, actor } as const
      await this.#history.append(goalRecord.of({ goal: this.#priced(done), change }), goalRecord.of({ goal: null, actor }))
      this.#changed()
    })
  }

  /** Throws GoalMissing. */
  clear(actor: Actor): Promise<void> {
    return this.#inOrder(async () => {
      this.#goal()
      await this.#history.append(goalRecord.of({ goal: null, actor }))
      this.#changed()
    })
  }

  /** Changes limits. Throws GoalMissing. */
  limitTo(budget: Budget, actor: Actor): Promise<void> {
    return this.#inOrder(async () => {
      const goal = this.#goal()
      await this.#write({ ...goal, budget: { ...goal.budget, ...budget } }, undefined, actor)
    })
  }

  #now(): number {
    return this.#ports.now().getTime()
  }

  #goal(): Goal {
    if (!this.goal) throw new AppError(GoalMissing)
    return this.goal
  }

  #change(make: (goal: Goal) => [Goal, reason?: string] | undefined, actor: Actor): Promise<void> {
    return this.#inOrder(async () => {
      const [goal, reason] = make(this.#goal()) ?? []
      if (goal) await this.#write(goal, { kind: 'lifecycle', status: goal.status, ...(reason === undefined ? {} : { reason }), actor })
    })
  }

  #priced(goal: Goal): Goal {
    const { cost_usd: _cost, ...rest } = goal
    const cost = costOfGoal(goal, this.#ports.price)
    return { ...rest, ...(cost === undefined ? {} : { cost_usd: cost }) }
  }

  async #write(goal: Goal, change?: GoalChange, actor?: Actor): Promise<void> {
    await this.#history.append(goalRecord.of({ goal: this.#priced(goal), ...(change ? { change } : {}), ...(actor ? { actor } : {}) }))
    this.#changed()
  }

  /** The session of an active goal stays loaded: the next load would take it for one that was left in the middle. */
  #changed(): void {
    if (this.goal?.status === 'active') this.#letGo ??= this.host.session.keep()
    else {
      this.#letGo?.()
      this.#letGo = undefined
    }
    this.#watchClock()
  }

  #watchClock(): void {
    clearTimeout(this.#deadline)
    const { goal } = this
    const { wall_clock_ms: limit } = goal?.budget ?? {}
    if (goal?.status !== 'active' || limit === undefined) return
    const left = limit - wallClockOf(goal, this.#now())
    // Timers run by another clock: one may end early by that of the goal, which somebody may also set back.
    const look = () => (wallClockOf(goal, this.#now()) < limit ? this.#watchClock() : this.onDeadline())
    this.#deadline = setTimeout(look, Math.min(Math.max(0, left), longestMs))
    this.#deadline.unref()
  }
}

/** Its clock stands still from this instant on. */
function rested(goal: Goal, now: number): Goal {
  const { since: _since, ...rest } = goal
  return { ...rest, wall_clock_ms: wallClockOf(goal, now) }
}
