/** The order of a session's events, whatever it does: what comes before what, by the recorded sequences of a working server. Pure. */
import type { Frame } from '../../kernel/testing.ts'

interface Turn {
  readonly id: number
  readonly prompt: string | undefined
  step: number | undefined
  /** The step failed; another one is its next attempt, unless it is interrupted before. */
  retrying: boolean
  /** Calls of the step: begun, not over. */
  readonly calls: Set<string>
}

/** Complaints about the frames of one session, in the order in which a subscriber got them. */
export function orderFaults(frames: readonly Frame[]): string[] {
  const faults: string[] = []
  const turns = new Map<string, Turn>()
  const ended = new Set<string>()
  const calls = new Map<string, 'asked' | 'answered' | 'begun' | 'over'>()
  const requests = new Map<string, { readonly call: string | undefined; over: boolean }>()
  const prompts = new Map<string, 'queued' | 'submitted' | 'running' | 'ended' | 'settled'>()
  const tasks = new Map<string, boolean>()
  const children = new Map<string, 'spawned' | 'working' | 'over'>()
  const compacting = new Set<string>()
  /** Calls that ask in the background. */
  const unwaited = new Set<string>()
  let pending = 'none'
  let status: string | undefined
  for (const { type, payload, seq } of frames) {
    const agent = String(payload.agentId ?? 'main')
    const fault = (text: string) => void faults.push(`${seq} ${type} of ${agent}: ${text}`)
    const must = (holds: boolean, text: string) => holds || fault(text)
    const turn = turns.get(agent)
    const callKey = (id: unknown) => `${agent} ${id}`
    const own = () => must(turn !== undefined && (payload.turnId === undefined || payload.turnId === turn.id), 'its turn does not run')
    const inStep = () => own() && must(turn?.step !== undefined && !turn.retrying, 'no step runs')
    switch (type) {
      case 'prompt.submitted':
        // Told again when it does not wait any more.
        must(payload.status !== 'queued' || !prompts.has(payload.promptId), 'it was submitted before')
        must([undefined, 'queued', 'submitted'].includes(prompts.get(payload.promptId)), 'its turn began, or it is over')
        prompts.set(payload.promptId, payload.status === 'queued' ? 'queued' : 'submitted')
        break
      case 'turn.started':
        must(turn === undefined, `turn ${turn?.id} has not ended`)
        must(!ended.has(`${agent} ${payload.turnId}`), 'it had ended')
        if (payload.promptId !== undefined) {
          must(prompts.get(payload.promptId) === 'submitted', 'its prompt was not submitted, or not again behind waiting')
          prompts.set(payload.promptId, 'running')
        }
        turns.set(agent, { id: payload.turnId, prompt: payload.promptId, step: undefined, retrying: false, calls: new Set() })
        break
      case 'turn.step.started':
        own()
        must(turn?.step === undefined || turn.retrying, `step ${turn?.step} has not ended`)
        if (turn) Object.assign(turn, { step: payload.step, retrying: false })
        break
      case 'turn.step.completed':
        inStep()
        must(turn?.calls.size === 0, `calls run: ${[...(turn?.calls ?? [])].join()}`)
        if (turn) turn.step = undefined
        break
      case 'turn.step.interrupted':
        own()
        // The limit is told behind the last step that was allowed.
        must(turn?.step !== undefined || payload.reason === 'max_steps', 'no step runs')
        if (turn) Object.assign(turn, { step: undefined, retrying: false })
        break
      case 'turn.step.retrying':
        inStep()
        if (turn) turn.retrying = true
        break
      case 'assistant.delta':
      case 'thinking.delta':
      case 'tool.call.delta':
        inStep()
        break
      case 'tool.call.started':
        inStep()
        must([undefined, 'answered'].includes(calls.get(callKey(payload.toolCallId))), 'it began before, or waits for the user')
        calls.set(callKey(payload.toolCallId), 'begun')
        if (payload.args?.background === true) unwaited.add(callKey(payload.toolCallId))
        turn?.calls.add(payload.toolCallId)
        break
      case 'shell.started':
      case 'shell.completed':
        must(calls.get(callKey(payload.commandId)) === 'begun', 'the call does not run')
        break
      case 'tool.progress':
        must(calls.get(callKey(payload.toolCallId)) === 'begun', 'the call does not run')
        break
      case 'tool.result':
        must(calls.get(callKey(payload.toolCallId)) === 'begun', 'the call does not run')
        for (const { call, over } of requests.values())
          if (call === callKey(payload.toolCallId) && !unwaited.has(call)) must(over, 'what it asked the user is open')
        calls.set(callKey(payload.toolCallId), 'over')
        turn?.calls.delete(payload.toolCallId)
        break
      case 'event.approval.requested':
        must(pending !== 'none', 'work_changed did not say so before')
        must(calls.get(callKey(payload.tool_call_id)) === undefined, 'the call began before')
        calls.set(callKey(payload.tool_call_id), 'asked')
        requests.set(payload.approval_id, { call: callKey(payload.tool_call_id), over: false })
        break
      case 'event.question.requested':
        must(pending !== 'none', 'work_changed did not say so before')
        must(
          calls.get(callKey(payload.tool_call_id)) === 'begun' || calls.get(callKey(payload.tool_call_id)) === 'over',
          'its call has not begun'
        )
        requests.set(payload.question_id, {
          call: calls.get(callKey(payload.tool_call_id)) === 'begun' ? callKey(payload.tool_call_id) : undefined,
          over: false
        })
        break
      case 'event.approval.resolved':
      case 'event.question.answered':
      case 'event.question.dismissed': {
        const request = requests.get(payload.approval_id ?? payload.question_id)
        must(request?.over === false, 'nothing was asked, or it was over')
        if (request) request.over = true
        if (request?.call !== undefined && calls.get(request.call) === 'asked') calls.set(request.call, 'answered')
        break
      }
      case 'event.session.work_changed':
        pending = payload.pending_interaction
        if (!payload.main_turn_active && payload.last_turn_reason) must(!turns.has('main'), 'the turn of the main agent has not ended')
        break
      case 'event.session.status_changed':
        must(status === undefined || payload.previous_status === status, `it was ${status}`)
        must(payload.status !== payload.previous_status, 'nothing changed')
        status = payload.status
        break
      case 'turn.ended':
        own()
        must(turn?.step === undefined, `step ${turn?.step} has not ended`)
        ended.add(`${agent} ${turn?.id}`)
        turns.delete(agent)
        if (turn?.prompt !== undefined) prompts.set(turn.prompt, 'ended')
        break
      case 'prompt.completed':
      case 'prompt.aborted': {
        const before = prompts.get(payload.promptId)
        const turnless = type === 'prompt.aborted' || payload.reason === 'blocked'
        if (before !== undefined)
          must(before === 'ended' || (turnless && (before === 'queued' || before === 'submitted')), `it is ${before}`)
        prompts.set(payload.promptId, 'settled')
        break
      }
      case 'task.started':
        must(!tasks.has(payload.info.taskId), 'it began before')
        tasks.set(payload.info.taskId, true)
        break
      case 'task.terminated':
        must(tasks.get(payload.info.taskId) === true, 'it does not run')
        tasks.set(payload.info.taskId, false)
        break
      case 'subagent.spawned':
        children.set(payload.subagentId, 'spawned')
        break
      case 'subagent.started':
        must(children.has(payload.subagentId), 'it was not spawned')
        children.set(payload.subagentId, 'working')
        break
      case 'subagent.completed':
        must(children.get(payload.subagentId) === 'working', 'it does not work')
        children.set(payload.subagentId, 'over')
        break
      case 'subagent.failed': // its process may have died before it was at work
        must(['spawned', 'working'].includes(children.get(payload.subagentId) ?? ''), 'it was not spawned, or is over')
        children.set(payload.subagentId, 'over')
        break
      case 'compaction.started':
        must(!compacting.has(agent), 'another one runs')
        compacting.add(agent)
        break
      case 'compaction.completed':
      case 'compaction.cancelled':
        must(compacting.delete(agent), 'none runs')
        break
      default:
        break
    }
  }
  return faults
}
