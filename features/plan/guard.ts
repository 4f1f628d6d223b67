/** What plan mode forbids. A guard can only refuse: what it lets through is still judged by the rules of the user. */
import type { AgentHost } from '../sessions/index.ts'
import type { ToolCallContext, ToolDenial } from '../tools/index.ts'

/** Their effects outlast the planning. */
const forbidden: ReadonlySet<string> = new Set(['TaskStop', 'CronCreate', 'CronDelete'])

export interface Planning {
  /** The agent itself plans, or one that it works for. */
  readonly own: boolean
  /** The plan file of the agent itself: as it is called, and with links on the way resolved. */
  readonly file?: string | undefined
  readonly real?: string | undefined
}

export async function refusalOf(
  context: ToolCallContext,
  planning: (agent: AgentHost) => Promise<Planning | undefined>
): Promise<ToolDenial | undefined> {
  const { tool, execution, env } = context
  const { accesses } = execution
  const writes = accesses.some(({ kind }) => kind === 'exclusive')
    ? []
    : accesses.flatMap(access => (access.kind === 'write' || access.kind === 'readwrite' ? [access.path] : []))
  const suspect = writes.length > 0 || tool.name === 'Write' || tool.name === 'Edit' || forbidden.has(tool.name)
  if (suspect && env.earlier.some(call => call.tool === 'EnterPlanMode')) {
    return { kind: 'deny', output: `Plan mode begins with a call before this one in your response: ${tool.name} was not carried out.` }
  }
  const plan = suspect ? await planning(env.agent) : undefined
  if (!plan) return undefined
  if (forbidden.has(tool.name)) return { kind: 'deny', output: `Plan mode is on: ${tool.name} has to wait until the plan is approved.` }
  if (!plan.own)
    return {
      kind: 'deny',
      output: 'The agent that gave you this task is in plan mode: no file may be changed. Report what you found instead.'
    }
  if (writes.length > 0 && writes.every(path => path === plan.real)) return undefined
  return {
    kind: 'deny',
    output: `Plan mode is on: no file may be changed but the plan file ${plan.file}. Write the plan there, then call ExitPlanMode.`
  }
}
