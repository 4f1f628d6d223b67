/**
 * The timeline that follows from the records of an agent: turns, steps, frames, markers. Begins at the record of any turn, and gives for each
 * record the operations that bring a timeline up to date. Pure, but for text that still streams (`streamed`). What undo takes back stays here:
 * the index says which turns are left.
 */
import { ownParts } from '../agent/index.ts'
import { type CoreRecord, coreRecord, type HistoryRecord, textOf, type WirePart } from '../history/index.ts'
import { taskNoticesOf } from '../tasks/index.ts'
import { answerFrames, isGiven, nextFrameId, stepHead, textFrame, toolFrame, toolIn, turnHead, usageOf, without } from './frames.ts'
import { attachmentsOf, isShownInput, isShownInside, originOf, withoutBytes } from './input.ts'
import { type Link, linksOf } from './links.ts'
import { markersOf, skillsOf } from './markers.ts'
import type { Frame, Op, Step, StepHead, ToolFrame, Turn, TurnHead } from './shapes.ts'
import { idOf, Timeline, turnId } from './timeline.ts'

type Of<T extends CoreRecord['type']> = Extract<CoreRecord, { type: T }>
/** Of prompts, by id. */
export type Contents = ReadonlyMap<string, readonly WirePart[]>

const iso = (time: number | undefined): string => new Date(time ?? 0).toISOString()

export class TurnFold {
  readonly timeline = new Timeline()
  /** Contents of prompts that were accepted and are not over. */
  readonly #contents: Map<string, readonly WirePart[]>
  /** The message that opens the turn is to come. */
  #opening: CoreRecord | undefined
  /** What came into the turn, to be shown with the next step. */
  #inside: Frame[] = []
  /** Arguments that are being told, by call. */
  readonly #arguments = new Map<string, string>()
  /** The step whose answer is on record. */
  #sealed: string | undefined
  #ops: Op[] = []
  /** Operations cannot say what became of the timeline: those who follow it need it anew. */
  broken = false
  /** Only the last step has its frames. */
  #lean = false

  /** `contents`: of prompts that were accepted before. */
  constructor(contents: Contents = new Map()) {
    this.#contents = new Map(contents)
  }

  /** Forgets the frames of all steps but the last one, which do not change any more. */
  forgetFrames(): void {
    this.#lean = true
    for (const step of this.timeline.lastTurn()?.steps.slice(0, -1) ?? []) step.frames.length = 0
  }

  /** The step that was begun last, of the turn that runs. */
  lastStep(): Step | undefined {
    return this.#running()?.steps.at(-1)
  }

  /** Contents of the prompts that are not over, for the fold that goes on with the next turn. */
  contents(): Contents {
    return this.#contents
  }

  /** These turns were taken back. */
  remove(ids: readonly string[]): void {
    this.timeline.apply({ op: 'items.remove', ids: [...ids] })
  }

  /** The operations of a record at this position, which the timeline has taken in. */
  take(record: HistoryRecord, at: number): readonly Op[] {
    this.#ops = []
    const core = coreRecord(record)
    if (core) this.#core(core, at)
    for (const { toolCallId, change } of linksOf(record)) this.#link(toolCallId, change)
    for (const op of markersOf(record, at)) this.#put(op)
    return this.#ops
  }

  /** A piece of the answer that is being told; what is on record does not change any more. */
  streamed(kind: 'text' | 'thinking', turn: number, chunk: string): readonly Op[] {
    this.#ops = []
    const step = this.#openStep(turn)
    if (!step || chunk === '') return this.#ops
    const last = step.frames.at(-1)
    const frame = last?.kind === kind && !(last.kind === 'text' && last.role === 'user') ? last : textFrame(kind, step, '')
    if (frame !== last) this.#putFrame(step, frame)
    const target = { type: 'frame' as const, turnId: step.turnId, stepId: step.stepId, frameId: frame.frameId }
    this.#put({ op: 'append', target, offset: frame.text.length, text: chunk })
    return this.#ops
  }

  /** Arguments of a call that are being told. */
  calling(turn: number, toolCallId: string, name: string | undefined, part: string): readonly Op[] {
    this.#ops = []
    const step = this.#openStep(turn)
    if (!step) return this.#ops
    const known = toolIn(step, toolCallId)
    // Who first looks in the middle of a call's arguments has it from its record: half of them are none.
    if (!known && name === undefined) return this.#ops
    const told = known?.inputText ?? ''
    const text = (this.#arguments.get(toolCallId) ?? told) + part
    this.#arguments.set(toolCallId, text)
    // A frame is told whole: that of long arguments only when it has grown by a quarter.
    if (known && text.length < told.length * 1.25 + 64) return this.#ops
    this.#putFrame(step, { ...(known ?? toolFrame(step, toolCallId, name ?? '')), inputText: text })
    return this.#ops
  }

  progressed(turn: number, toolCallId: string, progress: NonNullable<ToolFrame['progress']>): readonly Op[] {
    this.#ops = []
    const step = this.timeline.turn(turnId(turn))?.steps.at(-1)
    const frame = step && toolIn(step, toolCallId)
    if (step && frame?.state === 'running') this.#putFrame(step, { ...frame, progress })
    return this.#ops
  }

  #core(record: CoreRecord, at: number): void {
    switch (record.type) {
      case 'prompt.accepted':
        this.#contents.set(record.prompt_id, record.content)
        break
      case 'prompt.settled':
        for (const id of record.prompt_ids) this.#contents.delete(id)
        break
      case 'turn.started':
        this.#begin(record, at)
        break
      case 'message':
        this.#message(record, at)
        break
      case 'step.begin':
        this.#beginStep(record)
        break
      case 'step.message':
        this.#seal(record)
        break
      case 'tool.begin': {
        const { tool_call_id, tool_name, args, display } = record
        const shown = { name: tool_name, input: args, ...(display ? { display } : {}) }
        const todo = tool_name === 'TodoList' && Array.isArray(args.todos) ? { todoId: 'todo' } : {}
        this.#changeTool(tool_call_id, { ...shown, ...todo }, record)
        break
      }
      case 'tool.result': {
        const { tool_call_id, tool_name, content, is_error } = record
        const output = content.every(part => part.type === 'text') ? textOf(content) : withoutBytes(content)
        const error = is_error ? { error: typeof output === 'string' ? output : textOf(content) } : {}
        const end = { state: is_error ? 'error' : 'done', output, progress: undefined, ...error } as const
        this.#changeTool(tool_call_id, { name: tool_name, ...end }, record)
        break
      }
      case 'step.end':
        this.#endStep(record)
        break
      case 'turn.ended':
        this.#end(record, at)
        break
      default:
        break
    }
  }

  #begin(record: Of<'turn.started'>, at: number): void {
    const id = turnId(record.turn_id)
    const content = this.#contents.get(record.prompt_id ?? '')
    this.#opening = record
    this.#inside = []
    this.#putTurn({
      kind: 'turn',
      turnId: id,
      ordinal: record.turn_id,
      state: 'running',
      origin: originOf(record.origin),
      ...(content && isShownInput(record.origin) ? this.#input(ownParts(content, record.origin), id) : {}),
      ...(record.prompt_id === undefined ? {} : { triggerPromptId: record.prompt_id }),
      startedAt: iso(record.time)
    })
    for (const op of skillsOf(record.origin, at, iso(record.time))) this.#put(op)
  }

  #input(content: readonly WirePart[], id: string): Pick<Turn, 'prompt' | 'attachmentIds'> {
    const attachmentIds = attachmentsOf(content, id).map(attachment => attachment.attachmentId)
    return { prompt: textOf(content), ...(attachmentIds.length > 0 ? { attachmentIds } : {}) }
  }

  #message(record: Of<'message'>, at: number): void {
    const { origin, turn_id, content, role, prompt_id, id } = record
    const turn = this.#running()
    if (role !== 'user' || !turn || turn_id !== turn.ordinal) return
    if (this.#opening) {
      this.#opening = undefined
      if (turn.prompt === undefined && content && prompt_id === undefined && origin && isShownInput(origin)) {
        this.#putTurn({ ...turnHead(turn), ...this.#input(content, turn.turnId) })
      }
      return
    }
    if (!isShownInside(origin)) return
    const given = content ?? this.#contents.get(prompt_id ?? '') ?? []
    const attachmentIds = attachmentsOf(given, prompt_id ?? id ?? `m${at}`).map(attachment => attachment.attachmentId)
    const taskId = originOf(origin ?? { kind: 'user' }).taskId
    const [notice] = taskNoticesOf(record)
    this.#inside.push({
      kind: 'text',
      frameId: '',
      role: 'user',
      text: notice ? `${notice.title}\n${notice.body}` : textOf(ownParts(given, origin)),
      ...(attachmentIds.length > 0 ? { attachmentIds } : {}),
      origin: { kind: 'user', ...origin },
      ...(taskId === undefined ? {} : { taskId })
    })
  }

  #beginStep({ turn_id, step: ordinal, time }: Of<'step.begin'>): void {
    const turn = this.timeline.turn(turnId(turn_id))
    if (!turn) return
    const before = turn.steps.at(-1)
    if (before?.state === 'running') this.#putStep({ ...stepHead(before), state: 'interrupted', endedAt: iso(time), endReason: 'error' })
    this.#opening = undefined
    this.#sealed = undefined
    const stepId = `${turn.turnId}.${ordinal}`
    this.#putStep({ kind: 'step', stepId, turnId: turn.turnId, ordinal, state: 'running', startedAt: iso(time) })
    this.#showInside(stepId, turn.turnId)
  }

  #showInside(stepId: string, id: string): void {
    const frames = this.#inside.splice(0)
    for (const frame of frames) {
      const step = this.timeline.step(id, stepId)
      if (step) this.#putFrame(step, { ...frame, frameId: nextFrameId(step) })
    }
  }

  /** The answer is on record: what was streamed of it gives way. */
  #seal({ turn_id, content, tool_calls }: Of<'step.message'>): void {
    const step = this.timeline.turn(turnId(turn_id))?.steps.at(-1)
    if (!step) return
    this.#sealed = step.stepId
    this.#arguments.clear()
    const given = step.frames.filter(isGiven)
    const frames = answerFrames({ ...step, frames: given }, content, tool_calls).map(frame => {
      const shown = frame.kind === 'tool' ? toolIn(step, frame.toolCallId) : undefined
      return shown ? { ...shown, ...frame } : frame
    })
    this.#putFrames(step, [...given, ...frames], true)
  }

  #endStep(record: Of<'step.end'>): void {
    const { turn_id, step: ordinal, time, retry, interrupted, message, usage, first_token_ms, stream_ms } = record
    const step = this.timeline.step(turnId(turn_id), `${turnId(turn_id)}.${ordinal}`)
    if (step?.state !== 'running') return
    this.#drop(step)
    const head = stepHead(this.timeline.step(step.turnId, step.stepId) ?? step)
    const timing = {
      ...(first_token_ms === undefined ? {} : { llmFirstTokenLatencyMs: first_token_ms }),
      ...(stream_ms === undefined ? {} : { llmStreamDurationMs: stream_ms })
    }
    const facts = {
      ...(usage ? { usage: { ...usage } } : {}),
      ...(Object.keys(timing).length > 0 ? { timing } : {})
    }
    if (retry && !interrupted) {
      const { failed_attempt, max_attempts, delay_ms, error_name, error_message, status } = retry
      this.#putStep({
        ...head,
        retry: {
          failedAttempt: failed_attempt,
          nextAttempt: failed_attempt + 1,
          maxAttempts: max_attempts,
          delayMs: delay_ms,
          errorName: error_name,
          errorMessage: error_message,
          ...(status === undefined ? {} : { statusCode: status })
        }
      })
    } else if (interrupted) {
      const end = { endedAt: iso(time), endReason: interrupted, ...(message === undefined ? {} : { endMessage: message }) }
      this.#putStep({ ...head, ...facts, state: 'interrupted', ...end })
    } else this.#putStep({ ...head, ...facts, state: 'completed', endedAt: iso(time), finishReason: record.reason })
  }

  #end(record: Of<'turn.ended'>, at: number): void {
    const turn = this.timeline.turn(turnId(record.turn_id))
    if (!turn) return
    const { reason, duration_ms, error, time, interrupt_reason } = record
    const last = turn.steps.at(-1)
    if (last) this.#showInside(last.stepId, turn.turnId)
    if (last?.state === 'running') {
      this.#drop(last)
      this.#putStep({ ...stepHead(last), state: 'interrupted', endedAt: iso(time), endReason: reason === 'failed' ? 'error' : 'aborted' })
    }
    for (const step of this.timeline.turn(turn.turnId)?.steps ?? []) {
      for (const frame of step.frames) {
        if (frame.kind === 'tool' && frame.state === 'running') this.#putFrame(step, { ...without(frame, 'progress'), state: 'error' })
      }
    }
    this.#opening = undefined
    this.#inside = []
    const usage = usageOf(this.timeline.turn(turn.turnId)?.steps ?? [])
    this.#putTurn({
      ...turnHead(turn),
      state: reason === 'blocked' ? 'failed' : reason,
      endedAt: iso(time),
      ...(usage ? { usage } : {}),
      ...(duration_ms === undefined ? {} : { durationMs: duration_ms }),
      ...(error ? { error: error.message } : {})
    })
    if (interrupt_reason !== 'user_cancelled') return
    const payload = { turnId: turn.ordinal, reason: interrupt_reason }
    this.#put({
      op: 'marker.upsert',
      item: { kind: 'marker', markerId: `m${at}`, marker: 'interruption', payload, at: iso(time) }
    })
  }

  /** What was streamed of an answer that never got on record. */
  #drop(step: Step): void {
    if (this.#sealed !== step.stepId) this.#putFrames(step, step.frames.filter(isGiven))
  }

  /** The turn that runs, which is the last one. */
  #running(): Turn | undefined {
    const turn = this.timeline.lastTurn()
    return turn?.state === 'running' ? turn : undefined
  }

  /** The step that streams. */
  #openStep(turn: number): Step | undefined {
    const step = this.timeline.turn(turnId(turn))?.steps.at(-1)
    return step?.state === 'running' && step.stepId !== this.#sealed && !step.retry ? step : undefined
  }

  /** The step of the running turn, or of the last one, with this call: mostly the newest. */
  #stepWith(id: string): Step | undefined {
    return this.timeline.lastTurn()?.steps.findLast(step => toolIn(step, id))
  }

  #changeTool(id: string, change: Partial<Omit<ToolFrame, 'kind' | 'frameId'>>, made?: { turn_id: number; step: number }): void {
    const step = this.#stepWith(id) ?? (made ? this.timeline.turn(turnId(made.turn_id))?.steps.at(-1) : undefined)
    if (!step) return
    const frame = { ...(toolIn(step, id) ?? toolFrame(step, id, change.name ?? '')), ...change }
    this.#putFrame(step, change.progress === undefined && 'progress' in change ? without(frame, 'progress') : frame)
  }

  #link(id: string, { agentRef, ...change }: Link['change']): void {
    const step = this.#stepWith(id)
    const frame = step && toolIn(step, id)
    if (!frame) return
    const refs = agentRef ? { agentRefs: [...(frame.agentRefs ?? []).filter(ref => ref.agentId !== agentRef.agentId), agentRef] } : {}
    this.#changeTool(id, { ...change, ...refs })
  }

  /** The frames of a step, as they are now: what cannot be said by changing single ones is said by making the turn anew. */
  #putFrames(step: Step, frames: readonly Frame[], sealed = false): void {
    const fits = step.frames.length <= frames.length && step.frames.every((frame, at) => frame.frameId === frames[at]?.frameId)
    if (fits) {
      frames.forEach((frame, at) => {
        // Who did not get the pieces gets the whole text.
        if (sealed || step.frames[at] !== frame) this.#putFrame(step, frame)
      })
      return
    }
    const { items } = this.timeline
    const turn = this.timeline.turn(step.turnId)
    if (!turn) return
    if (this.#lean) {
      this.timeline.apply({ op: 'step.upsert', turnId: step.turnId, step: stepHead(step) })
      step.frames.splice(0, step.frames.length, ...frames)
      this.broken = true
      return
    }
    const behind = items.slice(items.indexOf(turn))
    this.#put({ op: 'items.remove', ids: behind.map(idOf) })
    for (const item of behind) {
      if (item.kind === 'marker') this.#put({ op: 'marker.upsert', item })
      else if (item.kind === 'taskref') this.#put({ op: 'taskref.upsert', item })
      else {
        this.#putTurn(turnHead(item))
        for (const each of item.steps) {
          this.#putStep(stepHead(each))
          for (const frame of each.stepId === step.stepId ? frames : each.frames) this.#putFrame(each, frame)
        }
      }
    }
  }

  #putTurn(turn: TurnHead): void {
    this.#put({ op: 'turn.upsert', turn })
  }

  #putStep(step: StepHead): void {
    this.#put({ op: 'step.upsert', turnId: step.turnId, step })
  }

  #putFrame({ turnId: id, stepId }: Pick<Step, 'turnId' | 'stepId'>, frame: Frame): void {
    this.#put({ op: 'frame.upsert', turnId: id, stepId, frame })
  }

  #put(op: Op): void {
    this.timeline.apply(op)
    this.#ops.push(op)
  }
}
