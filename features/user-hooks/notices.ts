/** Hooks that only hear of something: which event of the server becomes which event of hooks. */
import { defineSlot, headOf, type PackContext } from '../../kernel/index.ts'
import { type Agents, promptQueued, turnEnded, turnStarted } from '../agent/index.ts'
import { compactionCompleted, compactionStarted } from '../compaction/index.ts'
import type { Origin } from '../history/index.ts'
import { approvalRequested, approvalResolved } from '../interactions/index.ts'
import type { Llm } from '../llm/index.ts'
import type { AgentHost, Session, Sessions } from '../sessions/index.ts'
import { StoppedSubagents, subagentCompleted, subagentFailed, subagentSpawned } from '../subagents/index.ts'
import { taskStarted, taskTerminated } from '../tasks/index.ts'
import type { HookEvent } from './contract.ts'
import { AskedSlot, textOf } from './deciding.ts'
import type { HookRules } from './rules.ts'
import type { HookCall, HookRunner } from './runner.ts'

/** What open approvals are about: their end does not say it. */
const ApprovalSlot = defineSlot('hook-approvals', (_session: Session) => new Map<string, { readonly tool_name: string }>())
/** Profiles of subagents: their begin and end name none. */
const ChildSlot = defineSlot('hook-subagents', (_session: Session) => new Map<string, string>())
/** Why the context of an agent is being made smaller: the end does not say it. */
const TriggerSlot = defineSlot('hook-compactions', (_session: Session) => new Map<string, string>())
const HEARTBEAT_MS = 60_000

export interface NoticePorts {
  readonly rules: HookRules
  readonly runner: HookRunner
  readonly sessions: Sessions
  readonly agents: () => Agents | undefined
  readonly llm: () => Llm | undefined
}

export function tellHooks(ctx: PackContext, { rules, runner, sessions, agents, llm }: NoticePorts): void {
  ctx.slot(ApprovalSlot)
  ctx.slot(ChildSlot)
  ctx.slot(TriggerSlot)
  const tell = (event: HookEvent, session_id: string | undefined, subject = '', fields: HookCall['fields'] = {}) => {
    const session = rules.has(event) && session_id !== undefined ? sessions.loaded(session_id) : undefined
    if (session) runner.tell({ event, session, subject, fields })
  }

  const hostOf = (session_id: string | undefined, agent_id: string | undefined): AgentHost | undefined =>
    sessions.loaded(session_id ?? '')?.agent(agent_id ?? '')

  ctx.on(promptQueued, ({ session_id, payload: { promptId, content, queueLength } }) => {
    const prompt = textOf(content)
    tell('UserPromptQueued', session_id, prompt, { prompt_id: promptId, prompt, queue_length: queueLength })
  })
  ctx.on(turnStarted, ({ session_id, subject, payload: { turnId: turn_id, origin, prompt = '' } }) => {
    const { kind: origin_kind, name: origin_name }: Origin = origin
    tell('TurnStarted', session_id, origin_kind, { agent_id: subject, turn_id, origin_kind, origin_name, prompt })
  })
  ctx.on(turnEnded, ({ session_id, subject, payload: { turnId: turn_id, reason, error, interruptReason } }) => {
    hostOf(session_id, subject)?.peek(AskedSlot)?.clear()
    if (interruptReason === 'user_cancelled') tell('Interrupt', session_id, '', { agent_id: subject, turn_id, reason })
    const facts = { agent_id: subject, turn_id, error_type: error?.code ?? interruptReason, error_message: error?.message ?? '' }
    if (reason === 'failed') tell('StopFailure', session_id, String(facts.error_type), facts)
  })
  ctx.on(
    approvalRequested,
    ({ session_id, subject, payload: { approval_id, turn_id, tool_name, tool_call_id, action, tool_input_display } }) => {
      if (!rules.has('PermissionRequest', 'PermissionResult')) return
      const tool_input = hostOf(session_id, subject)?.peek(AskedSlot)?.get(tool_call_id)
      const of = { id: approval_id, approval_id, agent_id: subject, turn_id }
      const facts = { ...of, tool_name, tool_call_id, tool_input, action, display: tool_input_display }
      sessions
        .loaded(session_id ?? '')
        ?.get(ApprovalSlot)
        .set(approval_id, facts)
      tell('PermissionRequest', session_id, tool_name, facts)
    }
  )
  ctx.on(approvalResolved, ({ session_id, payload: { approval_id, decision, feedback } }) => {
    const open = sessions.loaded(session_id ?? '')?.peek(ApprovalSlot)
    const facts = open?.get(approval_id)
    open?.delete(approval_id)
    tell('PermissionResult', session_id, facts?.tool_name, { id: approval_id, approval_id, tool_name: '', ...facts, decision, feedback })
  })
  const sizeOf = async (host: AgentHost | undefined, facts: Readonly<Record<string, unknown>>) => {
    const agent =
      host &&
      (await agents()
        ?.of(host)
        .catch(() => undefined))
    return { ...facts, token_count: agent?.usage().context_tokens }
  }
  ctx.on(compactionStarted, ({ session_id, subject, payload: { trigger, instruction = '' } }) => {
    sessions
      .loaded(session_id ?? '')
      ?.get(TriggerSlot)
      .set(subject ?? '', trigger)
    if (rules.has('PreCompact'))
      tell('PreCompact', session_id, trigger, sizeOf(hostOf(session_id, subject), { agent_id: subject, trigger, instruction }))
  })
  ctx.on(compactionCompleted, ({ session_id, subject, payload: { result } }) => {
    const trigger = sessions
      .loaded(session_id ?? '')
      ?.peek(TriggerSlot)
      ?.get(subject ?? '')
    const { tokensBefore: tokens_before, tokensAfter: tokens_after } = result
    const facts = { agent_id: subject, trigger, tokens_before, tokens_after, estimated_token_count: tokens_after }
    tell('PostCompact', session_id, trigger, facts)
  })
  ctx.on(subagentSpawned, ({ session_id, payload: { subagentId: agent_id, subagentName } }) => {
    if (rules.has('SubagentStart', 'SubagentStop'))
      sessions
        .loaded(session_id ?? '')
        ?.get(ChildSlot)
        .set(agent_id, subagentName)
  })
  const nameOf = (session_id: string | undefined, agent_id: string) =>
    sessions
      .loaded(session_id ?? '')
      ?.peek(ChildSlot)
      ?.get(agent_id) ?? ''
  const childOver = (session_id: string | undefined, agent_id: string, facts: Readonly<Record<string, unknown>>) => {
    const agent_name = nameOf(session_id, agent_id)
    tell('SubagentStop', session_id, agent_name, { agent_id, agent_name, ...facts })
  }
  ctx.on(subagentCompleted, ({ session_id, payload }) =>
    childOver(session_id, payload.subagentId, { status: 'completed', response: headOf(payload.resultSummary, 2000) })
  )
  ctx.on(subagentFailed, ({ session_id, payload }) =>
    childOver(session_id, payload.subagentId, { status: 'failed', response: payload.error })
  )
  ctx.contribute(StoppedSubagents, {
    name: ctx.name,
    begun({ session, id: agent_id }, prompt) {
      const agent_name = nameOf(session.id, agent_id)
      tell('SubagentStart', session.id, agent_name, { agent_id, agent_name, prompt })
    },
    stopped: ({ session, id }) => childOver(session.id, id, { status: 'cancelled', response: '' })
  })
  ctx.on(taskStarted, ({ session_id, payload: { info } }) =>
    tell('TaskStarted', session_id, info.kind, {
      task_id: info.taskId,
      task_kind: info.kind,
      kind: info.kind,
      description: info.description,
      status: info.status,
      detached: info.detached === true,
      started_at: info.startedAt
    })
  )
  ctx.on(taskTerminated, ({ session_id, subject, payload: { info } }) => {
    if (info.terminalNotificationSuppressed) return
    const facts = {
      agent_id: subject,
      notification_type: `task.${info.status}`,
      task_id: info.taskId,
      task_kind: info.kind,
      source_kind: 'background_task',
      source_id: info.taskId,
      message: info.description,
      title: `Background task ${info.status}`,
      body: info.description,
      severity: info.status === 'completed' ? 'info' : 'warning'
    }
    tell('Notification', session_id, facts.notification_type, facts)
  })

  const settingsOf = async (session: Session, facts: Readonly<Record<string, unknown>>) => {
    const main = session.writable ? session.agent('main') : undefined
    const settings =
      main &&
      (
        await agents()
          ?.of(main)
          .catch(() => undefined)
      )?.settings()
    return { ...facts, model: settings?.model ?? llm()?.defaultAlias(), profile: settings?.profile ?? 'agent' }
  }
  // An archived session is over; it is loaded only to be read.
  const goesOn = ({ state }: Session) => !state.archived
  const begun = (session: Session) => {
    if (!goesOn(session)) return
    const source = session.agents().length === 0 ? 'startup' : 'resume'
    if (rules.has('SessionStart')) runner.tell({ event: 'SessionStart', session, subject: source, fields: settingsOf(session, { source }) })
  }
  sessions.onLoad(begun)
  sessions.onRestore(begun)
  sessions.onArchive(session => {
    if (goesOn(session)) runner.tell({ event: 'SessionEnd', session, subject: 'archive', fields: { reason: 'archive' } })
  })
  // Whoever was told something gets to hear it: the process does not end before, and the limit of a stopping tap bounds it.
  ctx.tap(ctx.hooks.stopping, async () => {
    for (const session of sessions.allLoaded().filter(goesOn)) tell('SessionEnd', session.id, 'exit', { reason: 'exit' })
    await runner.settled()
  })
  ctx.timer(HEARTBEAT_MS, () => {
    for (const session of sessions.allLoaded().filter(goesOn)) tell('SessionHeartbeat', session.id)
  })
}
