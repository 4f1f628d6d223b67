/** Frames of a step, what a turn and a step are without their parts, and what the steps of a turn have spent. */
import type { CoreRecord, WirePart } from '../history/index.ts'
import type { Frame, Step, StepHead, ToolFrame, Turn, TurnHead } from './shapes.ts'

/** The frames of an answer, as it is on record: neighbours of one kind are one, a call stands where it was made. */
export function answerFrames(
  given: Step,
  content: readonly WirePart[],
  calls: Extract<CoreRecord, { type: 'step.message' }>['tool_calls']
): Frame[] {
  const step: Step = { ...given, frames: [...given.frames] }
  const begin = step.frames.length
  const callsAt = (place: number) => {
    for (const call of calls) {
      const after = (call as { readonly after?: number }).after ?? content.length
      if (Math.min(after, content.length) === place) step.frames.push({ ...toolFrame(step, call.id, call.name), inputText: call.arguments })
    }
  }
  content.forEach((part, place) => {
    callsAt(place)
    const kind = part.type === 'thinking' ? 'thinking' : part.type === 'text' ? 'text' : undefined
    const text = String((kind === 'thinking' ? part.thinking : part.text) ?? '')
    if (!kind || text === '') return
    const last = step.frames.length > begin ? step.frames.at(-1) : undefined
    if (last?.kind === kind) step.frames[step.frames.length - 1] = { ...last, text: last.text + text }
    else step.frames.push(textFrame(kind, step, text))
  })
  callsAt(content.length)
  return step.frames.slice(begin)
}

/** Frames that came into the turn from outside stand first in their step. */
export const isGiven = (frame: Frame): boolean => frame.kind === 'text' && frame.role === 'user'

export const nextFrameId = (step: Step): string => `${step.stepId}.f${step.frames.filter(frame => frame.kind !== 'tool').length + 1}`

export function textFrame(kind: 'text' | 'thinking', step: Step, text: string): Extract<Frame, { kind: 'text' | 'thinking' }> {
  const frameId = nextFrameId(step)
  return kind === 'thinking' ? { kind, frameId, text } : { kind, frameId, role: 'assistant', text }
}

export const toolFrame = (step: Step, toolCallId: string, name: string): ToolFrame => ({
  kind: 'tool',
  frameId: `${step.stepId}.${toolCallId}`,
  toolCallId,
  name,
  state: 'running'
})

export const toolIn = (step: Step, id: string): ToolFrame | undefined =>
  step.frames.find((frame): frame is ToolFrame => frame.kind === 'tool' && frame.toolCallId === id)

export function without<T extends object, K extends keyof T>(value: T, key: K): Omit<T, K> {
  const { [key]: _gone, ...rest } = value
  return rest
}

export const turnHead = (turn: Turn): TurnHead => without(turn, 'steps') as TurnHead
export const stepHead = (step: Step): StepHead => without(step, 'frames') as StepHead

export function usageOf(steps: readonly Step[]): Turn['usage'] {
  const spent = steps.flatMap(step => step.usage ?? [])
  if (spent.length === 0) return undefined
  const sum = (value: (usage: NonNullable<Step['usage']>) => number) => spent.reduce((total, usage) => total + value(usage), 0)
  return {
    inputTokens: sum(usage => usage.inputOther + usage.inputCacheCreation),
    outputTokens: sum(usage => usage.output),
    cachedTokens: sum(usage => usage.inputCacheRead)
  }
}
