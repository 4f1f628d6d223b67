/** The tools by which the model sets, reads and ends goals. */
import { AppError, oneOf, type Static, Type } from '../../kernel/index.ts'
import { approvals, type Interactions, unattendedFailure } from '../interactions/index.ts'
import type { PermissionMode, Permissions } from '../permissions/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { type Tool, type ToolDisplay, type ToolEnv, ToolRefusal, type ToolResult } from '../tools/index.ts'
import { MAX_OBJECTIVE } from './contract.ts'
import type { GoalDriver } from './driver.ts'
import type { Budget } from './goal.ts'

export interface GoalToolPorts {
  readonly of: (agent: AgentHost) => Promise<GoalDriver>
  readonly permissions: () => Permissions | undefined
  readonly interactions: () => Interactions | undefined
}

const closed = { additionalProperties: false }
const createParameters = Type.Object(
  {
    objective: Type.String({ minLength: 1, maxLength: MAX_OBJECTIVE, description: 'What is to be reached, so that anybody can check it' }),
    completionCriterion: Type.Optional(Type.String({ description: 'How to see that it is reached' })),
    replace: Type.Optional(Type.Boolean({ description: 'In place of the goal that there is; default false' }))
  },
  closed
)
const updateParameters = Type.Object(
  {
    status: oneOf(['active', 'complete', 'blocked'], {
      description: 'complete: reached and verified; blocked: it cannot go on; active: work on it again'
    }),
    reason: Type.Optional(Type.String({ maxLength: 4000, description: 'What was verified, or what stands in the way' }))
  },
  closed
)
const budgetParameters = Type.Object(
  {
    value: Type.Number({ exclusiveMinimum: 0 }),
    unit: oneOf(['turns', 'tokens', 'milliseconds', 'seconds', 'minutes', 'hours', 'usd'])
  },
  closed
)

const minMs = 1000
const maxMs = 24 * 3600 * 1000
const milliseconds = { milliseconds: 1, seconds: 1000, minutes: 60_000, hours: 3_600_000 } as const

function budgetOf({ value, unit }: Static<typeof budgetParameters>): Budget {
  if (unit === 'usd') return { cost_usd: value }
  if (unit === 'turns' || unit === 'tokens') {
    if (!Number.isSafeInteger(value)) throw new ToolRefusal(`A budget of ${unit} is a whole number.`)
    return { [unit]: value }
  }
  const ms = Math.round(value * milliseconds[unit])
  if (ms < minMs || ms > maxMs) throw new ToolRefusal('A time budget lies between 1 second and 24 hours.')
  return { wall_clock_ms: ms }
}

/** What the engine says of a change that is not possible, as an error result. */
async function told(work: () => Promise<string>): Promise<ToolResult> {
  try {
    return { output: await work() }
  } catch (error) {
    if (!AppError.is(error)) throw error
    return { output: `${error.message}.`, is_error: true }
  }
}

/** Calls of one response see the goal as the ones before left it. */
const thing = 'goal'

/** Tools of main agents. */
export function goalTools(ports: GoalToolPorts): readonly Tool[] {
  const keeperOf = async (env: ToolEnv) => (await ports.of(env.agent)).keeper
  const show = async (env: ToolEnv) => JSON.stringify((await keeperOf(env)).snapshot() ?? null)
  /** A call of a turn whose goal was replaced meanwhile means another goal. */
  const current = (env: ToolEnv, work: () => Promise<string>) =>
    told(async () =>
      (await keeperOf(env)).drove(env.turn_id) ? 'Ignored: this turn worked on a goal that is not there any more.' : work()
    )

  const create: Tool<typeof createParameters> = {
    name: 'CreateGoal',
    description: `Sets a goal for this session: you are called again, turn after turn, until it is complete, blocked or out of budget. Use it only when
the user asks for work that goes on by itself. The user confirms it, unless the session runs in auto mode. One goal at a time.`,
    parameters: createParameters,
    source: 'builtin',
    async prepare(args: Static<typeof createParameters>, env) {
      const { objective, completionCriterion: criterion, replace } = args
      const wanted = { objective, ...(criterion === undefined ? {} : { criterion }), ...(replace ? { replace } : {}) }
      const mode = (await ports.permissions()?.mode(env.agent)) ?? 'manual'
      const display = { kind: 'goal_start', objective, ...(criterion === undefined ? {} : { completionCriterion: criterion }), mode }
      const description = `Start the goal: ${objective}`
      return {
        description,
        ...(mode === 'auto' ? {} : { display }),
        accesses: [{ kind: 'change', thing }],
        async check() {
          const keeper = await keeperOf(env)
          try {
            keeper.checkNew(wanted)
          } catch (error) {
            throw AppError.is(error) ? new ToolRefusal(`${error.message}.`) : error
          }
        },
        review: signal => review({ action: description, display }, env, signal, ports),
        run: () =>
          told(async () => {
            const keeper = await keeperOf(env)
            await keeper.create(wanted, 'model')
            await keeper.join(env.turn_id, true)
            return `The goal is active.\n${await show(env)}`
          })
      }
    }
  }
  const get: Tool = {
    name: 'GetGoal',
    description: 'Shows the goal of this session with its progress and budgets; null when there is none.',
    parameters: Type.Object({}, closed),
    source: 'builtin',
    prepare: (_args, env) => ({
      description: 'Read the goal',
      accesses: [{ kind: 'look', thing }],
      run: async () => ({ output: await show(env) })
    })
  }
  const update: Tool<typeof updateParameters> = {
    name: 'UpdateGoal',
    description: `Ends or resumes the goal of this session. "complete" only after you have verified that the objective is reached. "blocked" when the same
obstacle has held you up for at least 3 turns, or at once when the goal is impossible or unsafe. Then write a final message for the user.`,
    parameters: updateParameters,
    source: 'builtin',
    async prepare({ status, reason }: Static<typeof updateParameters>, env) {
      const keeper = await keeperOf(env)
      return {
        description: `Set the goal to ${status}`,
        accesses: [{ kind: 'change', thing }],
        ends_response: status !== 'active' && keeper.goal !== undefined && !keeper.drove(env.turn_id),
        run: () =>
          current(env, async () => {
            if (status === 'complete') {
              await keeper.complete('model', reason)
              return 'The goal is complete. Write a final message for the user.'
            }
            if (status === 'blocked') await keeper.block('model', reason ?? 'the model says that it cannot go on')
            else {
              await keeper.resume('model')
              if (!keeper.drives(env.turn_id)) await keeper.join(env.turn_id, true)
            }
            return show(env)
          })
      }
    }
  }
  const budget: Tool<typeof budgetParameters> = {
    name: 'SetGoalBudget',
    description: `Limits the goal of this session; when a limit is reached, work stops. Units: turns, tokens (output), a time from 1 second to 24 hours, usd.
Use it only for limits that the user has named.`,
    parameters: budgetParameters,
    source: 'builtin',
    prepare(args: Static<typeof budgetParameters>, env) {
      const limits = budgetOf(args)
      return {
        description: `Limit the goal to ${args.value} ${args.unit}`,
        accesses: [{ kind: 'change', thing }],
        run: () =>
          current(env, async () => {
            await (await keeperOf(env)).limitTo(limits, 'model')
            return show(env)
          })
      }
    }
  }
  return [create, get, update, budget]
}

/** Labels of an approval: the goal starts, in this mode. */
const modes: readonly PermissionMode[] = ['manual', 'yolo', 'auto']

/** The user decides whether a goal starts, and may switch the permission mode with it. Undefined: it may. */
async function review(
  shown: { readonly action: string; readonly display: ToolDisplay },
  env: ToolEnv,
  signal: AbortSignal,
  { permissions, interactions }: GoalToolPorts
): Promise<ToolResult | undefined> {
  if ((await permissions()?.mode(env.agent)) === 'auto') return undefined
  const broker = interactions()
  if (!broker) return { output: 'A goal needs the consent of the user, but nobody can be asked on this server.', is_error: true }
  const end = await broker.ask(
    approvals,
    {
      agent: env.agent,
      turn_id: env.turn_id,
      tool_call_id: env.tool_call_id,
      tool_name: 'CreateGoal',
      ...shown,
      labels: { approved: modes, rejected: [] }
    },
    signal
  )
  if (end.how === 'answered' && end.answer.decision === 'approved') {
    const chosen = modes.find(each => each === end.answer.selected_label)
    if (chosen !== undefined) await permissions()?.setMode(env.agent, chosen)
    return undefined
  }
  const feedback = end.how === 'answered' && end.answer.feedback !== undefined ? ` They say: ${end.answer.feedback}` : ''
  const what =
    end.how !== 'answered' ? 'nobody decided' : end.answer.decision === 'rejected' ? 'the user declined' : 'the user dismissed it'
  const fault = end.how === 'unattended' && end.fail ? { stop_turn: true, fail_turn: unattendedFailure('the review of a goal') } : {}
  return { output: `The goal was not started: ${what}.${feedback}`, is_error: true, ...fault }
}
