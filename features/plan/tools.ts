/** The tools EnterPlanMode and ExitPlanMode. */
import type { Static } from '../../kernel/index.ts'
import type { ApprovalAnswer, ApprovalAsk, InteractionEnd } from '../interactions/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { mayChange, type Tool, type ToolEnv, ToolRefusal } from '../tools/index.ts'
import type { AgentPlan } from './agent-plan.ts'
import { enterParameters, exitParameters, type PlanOption } from './contract.ts'
import { approvedText, labelsOf, ownLabels, type Reviewed, verdictOf } from './review.ts'

export interface PlanPorts {
  readonly planOf: (agent: AgentHost) => Promise<AgentPlan>
  /** Tells clients the status: plan mode went on or off. */
  readonly announce: (agent: AgentHost) => Promise<void>
  /** Nobody is to be asked: the agent decides alone. */
  readonly alone: (agent: AgentHost) => Promise<boolean>
  readonly ask: (ask: ApprovalAsk, signal: AbortSignal) => Promise<InteractionEnd<ApprovalAnswer>>
}

export function createEnterPlanMode({ planOf, announce }: PlanPorts): Tool<typeof enterParameters> {
  return {
    name: 'EnterPlanMode',
    description:
      'Switches to plan mode: you study the task and write a plan that the user reviews before anything is changed. Use it before work that ' +
      'touches several places, needs a decision on the approach, or would be costly to redo; not for small, clear changes, and not to answer ' +
      'a question.',
    parameters: enterParameters,
    source: 'builtin',
    async prepare(_args, { agent }) {
      const plan = await planOf(agent)
      if (plan.active) throw new ToolRefusal('Plan mode is on already.')
      return {
        description: 'Entering plan mode',
        accesses: [],
        async run() {
          if (!(await plan.enter('tool'))) throw new ToolRefusal('Plan mode is on already.')
          await announce(agent)
          return { output: `Plan mode is on. Plan file: ${plan.file}` }
        }
      }
    }
  }
}

export function createExitPlanMode(ports: PlanPorts): Tool<typeof exitParameters> {
  return {
    name: 'ExitPlanMode',
    description:
      'Puts the plan up for review and ends plan mode when the user approves it. Takes the plan from the plan file, so write it there before, ' +
      'in an earlier response. When the plan leaves the user a choice between two or three approaches, name them in `options`. Use it for plans ' +
      'to change something only, not when the task was to find something out.',
    parameters: exitParameters,
    source: 'builtin',
    async prepare(args: Static<typeof exitParameters>, env) {
      const options = (args.options ?? []).map(({ label, description = '' }) => ({ label, description }))
      const plan = await ports.planOf(env.agent)
      const { file } = plan
      if (!plan.active || file === undefined) throw new ToolRefusal('Plan mode is not on.')
      checkOptions(options)
      if (mayChange(env.earlier, (await plan.realFile()) ?? file)) {
        throw new ToolRefusal('The plan file may change by another call of this response. Call ExitPlanMode once that one is done.')
      }
      const text = await plan.read()
      if (text === '') throw new ToolRefusal(`The plan file ${file} is empty. Write the plan there first.`)
      const shown = options.length > 1 ? options : []
      const display = { kind: 'plan_review', plan: text, path: file, ...(shown.length > 0 ? { options: shown } : {}) }
      const description = 'Reviewing the plan'
      let how: Reviewed = { reviewed: false }
      return {
        description,
        display,
        accesses: [],
        async review(signal) {
          await plan.revise(text)
          if (await ports.alone(env.agent)) {
            await leave(plan, 'unreviewed', env, ports)
            return undefined
          }
          const ask = { ...approvalOf(env, description, display), labels: labelsOf(shown) }
          const verdict = verdictOf(await ports.ask(ask, signal), shown)
          if (!verdict.carryOut) {
            if (verdict.leave) await leave(plan, 'rejected', env, ports)
            return verdict.result
          }
          await leave(plan, 'approved', env, ports)
          how = { reviewed: true, option: verdict.option, feedback: verdict.feedback }
          return undefined
        },
        run: async () => ({ output: approvedText(text, file, how) })
      }
    }
  }
}

function approvalOf({ agent, turn_id, tool_call_id }: ToolEnv, action: string, display: ApprovalAsk['display']): ApprovalAsk {
  return { agent, turn_id, tool_call_id, tool_name: 'ExitPlanMode', action, display }
}

async function leave(plan: AgentPlan, how: Parameters<AgentPlan['leave']>[0], { agent }: ToolEnv, { announce }: PlanPorts): Promise<void> {
  if (await plan.leave(how)) await announce(agent)
}

function checkOptions(options: readonly PlanOption[]): void {
  const labels = options.map(({ label }) => label.trim().toLowerCase())
  if (new Set(labels).size < labels.length) throw new ToolRefusal('Two options have the same label.')
  const taken = ownLabels.find(own => labels.includes(own.toLowerCase()))
  if (taken !== undefined) throw new ToolRefusal(`No option may be called ${taken}: the user is offered that anyway.`)
}
