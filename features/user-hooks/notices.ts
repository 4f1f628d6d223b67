/** Hooks that only hear of something: which event of the server becomes which event of hooks. */
import { defineSlot, type PackContext } from '../../kernel/index.ts'
import { promptQueued, turnEnded, turnStarted } from '../agent/index.ts'
import { approvalRequested, approvalResolved } from '../interactions/index.ts'
import type { Session, Sessions } from '../sessions/index.ts'
import type { HookEvent } from './contract.ts'
import type { HookRules } from './rules.ts'
import type { HookRunner } from './runner.ts'

/** Tools of open approvals: their end names none. */
const ApprovalSlot = defineSlot('hook-approvals', (_session: Session) => new Map<string, string>())
const HEARTBEAT_MS = 60_000

export interface NoticePorts {
  readonly rules: HookRules
  readonly runner: HookRunner
  readonly sessions: Sessions
}

export function tellHooks(ctx: PackContext, { rules, runner, sessions }: NoticePorts): void {
  ctx.slot(ApprovalSlot)
  const tell = (event: HookEvent, session_id: string | undefined, subject = '', fields: Readonly<Record<string, unknown>> = {}) => {
    const session = rules.has(event) && session_id !== undefined ? sessions.loaded(session_id) : undefined
    if (session) runner.tell({ event, session, subject, fields })
  }

  ctx.on(promptQueued, ({ session_id, payload }) => tell('UserPromptQueued', session_id, '', { prompt_id: payload.promptId }))
  ctx.on(turnStarted, ({ session_id, subject, payload }) =>
    tell('TurnStarted', session_id, '', { agent_id: subject, turn_id: payload.turnId, prompt: payload.prompt ?? '' })
  )
  ctx.on(turnEnded, ({ session_id, subject, payload: { turnId: turn_id, reason, error, interruptReason } }) => {
    if (interruptReason === 'user_cancelled') tell('Interrupt', session_id, '', { agent_id: subject, turn_id })
    const facts = { agent_id: subject, turn_id, error_type: error?.code ?? interruptReason, error_message: error?.message ?? '' }
    if (reason === 'failed') tell('StopFailure', session_id, String(facts.error_type), facts)
  })
  ctx.on(approvalRequested, ({ session_id, payload: { approval_id, tool_name, tool_call_id, action } }) => {
    if (!rules.has('PermissionRequest', 'PermissionResult')) return
    sessions
      .loaded(session_id ?? '')
      ?.get(ApprovalSlot)
      .set(approval_id, tool_name)
    tell('PermissionRequest', session_id, tool_name, { approval_id, tool_name, tool_call_id, action })
  })
  ctx.on(approvalResolved, ({ session_id, payload: { approval_id, decision } }) => {
    const open = sessions.loaded(session_id ?? '')?.peek(ApprovalSlot)
    const tool_name = open?.get(approval_id) ?? ''
    open?.delete(approval_id)
    tell('PermissionResult', session_id, tool_name, { approval_id, tool_name, decision })
  })

  ctx.own(
    sessions.onLoad(session => {
      const source = session.agents().length === 0 ? 'startup' : 'resume'
      if (rules.has('SessionStart')) runner.tell({ event: 'SessionStart', session, subject: source, fields: { source } })
    })
  )
  ctx.own(
    sessions.onArchive(session => {
      runner.tell({ event: 'SessionEnd', session, subject: 'archive', fields: { reason: 'archive' } })
    })
  )
  // Whoever was told something gets to hear it: the process does not end before, and the limit of a stopping tap bounds it.
  ctx.tap(ctx.hooks.stopping, async () => {
    for (const session of sessions.allLoaded()) tell('SessionEnd', session.id, 'exit', { reason: 'exit' })
    await runner.settled()
  })
  const beat = setInterval(() => {
    for (const session of sessions.allLoaded()) tell('SessionHeartbeat', session.id)
  }, HEARTBEAT_MS)
  beat.unref()
  ctx.own(() => clearInterval(beat))
}
