/** The permission gate before a tool call: decides, asks the user where needed, remembers the answer. */
import { homeOfUser, type Logger } from '../../kernel/index.ts'
import { type ApprovalAnswer, approvals, type InteractionEnd, type Interactions, unattendedFailure } from '../interactions/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import {
  type ToolCallContext,
  type ToolDecision,
  type ToolDenial,
  type ToolDisplay,
  type ToolVerdict,
  withoutLinks
} from '../tools/index.ts'
import { decide } from './chain.ts'
import type { Approval, Permissions } from './contract.ts'
import { findWorkTree } from './control-files.ts'
import { meansPath, type Rule, rulesFor } from './rules.ts'

export interface GatePorts {
  readonly permissions: Permissions
  readonly remembered: (agent: AgentHost) => Promise<readonly Approval[]>
  readonly rules: () => { readonly rules: readonly Rule[]; readonly unsure: boolean }
  readonly interactions: () => Interactions | undefined
  readonly log: Logger
  /** The server's home, absolute. */
  readonly home: string
}

/** Verdict for a call that is about to run: `run`, `deny`, or that the user must be asked. */
export async function permit(context: ToolCallContext, ports: GatePorts): Promise<ToolVerdict> {
  const { agent, cwd } = context.env
  let workTree: ReturnType<typeof findWorkTree> | undefined
  const opinion = await decide({
    tool: context.tool.name,
    execution: context.execution,
    mode: await ports.permissions.mode(agent),
    ...ports.rules(),
    remembered: await ports.remembered(agent),
    cwd: await withoutLinks(cwd),
    home: await withoutLinks(ports.home),
    agent_dir: await withoutLinks(agent.dir),
    workTree: () => (workTree ??= findWorkTree(cwd))
  })
  if (opinion.kind === 'approve') return { kind: 'run' }
  if (opinion.kind === 'deny') return deny(context, opinion.text)
  const interactions = ports.interactions()
  if (!interactions) return deny(context, `The call of ${context.tool.name} needs an approval, but nobody can be asked on this server.`)
  return { kind: 'ask', ask: () => askUser(context, interactions, ports) }
}

/** Whether deny rules of Read leave a file (absolute path, links resolved) to a search that works in `cwd`. */
export async function readable(rules: readonly Rule[], cwd: string): Promise<(path: string) => boolean> {
  const places = { cwd: await withoutLinks(cwd), home: homeOfUser() }
  const { deny } = rulesFor('Read', rules)
  return path => !deny.some(rule => meansPath(rule, path, places))
}

async function askUser(context: ToolCallContext, interactions: Interactions, ports: GatePorts): Promise<ToolDecision> {
  const { agent, turn_id } = context.env
  const end = await interactions.ask(
    approvals,
    {
      agent,
      turn_id,
      tool_call_id: context.call.id,
      tool_name: context.tool.name,
      action: context.execution.description,
      display: context.execution.display ?? genericDisplay(context)
    },
    context.signal
  )
  if (end.how !== 'answered' || end.answer.decision !== 'approved') {
    const fails = end.how === 'unattended' && end.fail
    const fault = { stop_turn: true, fail_turn: unattendedFailure(`the approval of ${context.tool.name}`) }
    return { ...deny(context, refusalText(context.tool.name, end)), ...(fails ? fault : {}) }
  }
  const { scope, feedback } = end.answer
  if (scope === 'session') {
    try {
      const { approval_argument: argument } = context.execution
      await ports.permissions.remember(agent, { tool: context.tool.name, ...(argument === undefined ? {} : { argument }) })
    } catch (error) {
      ports.log.error({ err: error, tool: context.tool.name }, 'an approval could not be remembered; it counts for this call only')
    }
  }
  return { kind: 'run', ...(feedback ? { note: `The user approved the call and says: ${feedback}` } : {}) }
}

function genericDisplay(context: ToolCallContext): ToolDisplay {
  return { kind: 'generic', summary: context.execution.description, detail: context.args }
}

function refusalText(tool: string, end: InteractionEnd<ApprovalAnswer>): string {
  if (end.how === 'expired') return `Nobody answered the approval request for ${tool} in time, so the call was not made.`
  if (end.how === 'unattended')
    return `Nobody is there to approve the call of ${tool}, so it was not made. Go on with what needs no approval, and say what is left.`
  const answer = end.how === 'answered' ? end.answer : { decision: 'cancelled' as const, feedback: undefined }
  const reason = answer.feedback ? ` Reason: ${answer.feedback}` : ''
  if (answer.decision === 'cancelled') return `The approval of ${tool} was cancelled, so the call was not made.${reason}`
  return `The user rejected the call of ${tool}.${reason}`
}

function deny(context: ToolCallContext, text: string): ToolDenial {
  const hint = context.env.agent.record.type === 'main' ? '' : '\nTry another way; neither repeat this call nor work around the decision.'
  return { kind: 'deny', output: text + hint }
}
