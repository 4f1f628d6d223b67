/** Inputs that opened turns, and plans that were put up: what is looked for in the whole transcript of an agent. */

import { ownParts } from '../agent/index.ts'
import { coreRecord, type Origin, textOf, type WirePart } from '../history/index.ts'
import type { PlanEntry, UserMessage } from './contract.ts'
import type { TurnEntry } from './index-state.ts'
import { attachmentsOf, isShownInput, originOf } from './input.ts'
import { turnItems } from './page.ts'
import type { Interaction, ToolFrame } from './shapes.ts'
import { contentAt, type Source } from './source.ts'
import { turnId } from './timeline.ts'

/** Reads the begin of every turn, and no more. */
export async function userMessages(source: Source): Promise<UserMessage[]> {
  const messages: UserMessage[] = []
  for (const entry of source.entries) {
    const { ordinal, prompt_at, state, started } = entry
    const id = turnId(ordinal)
    const opening = await openingOf(source, entry)
    if (!opening || !isShownInput(opening.origin)) continue
    const content = prompt_at === undefined || opening.content ? opening.content : await contentAt(source, entry)
    if (!content) continue
    const attachment_ids = attachmentsOf(content, id).map(({ attachmentId }) => attachmentId)
    messages.push({
      turn_id: id,
      ordinal,
      state,
      origin: originOf(opening.origin),
      prompt: textOf(ownParts(content, opening.origin)),
      ...(attachment_ids.length > 0 ? { attachment_ids } : {}),
      started_at: new Date(started).toISOString()
    })
  }
  return messages
}

/** The origin of a turn, and the content of its message, or that of its prompt when that was accepted right before. */
async function openingOf({ records, end }: Source, { at, prompt_at, prompt_end, until }: TurnEntry) {
  let origin: Origin | undefined
  let content: readonly WirePart[] | undefined
  const from = prompt_at !== undefined && prompt_end === at ? prompt_at : at
  for await (const { value } of records({ from, to: until ?? end })) {
    const record = coreRecord(value)
    if (record?.type === 'prompt.accepted') content = record.content
    else if (record?.type === 'turn.started' && !origin) origin = record.origin
    else if (record?.type === 'message' && prompt_at === undefined) content = record.content
    if (origin && (prompt_at !== undefined || content)) break
    if (record?.type === 'step.begin') break
  }
  return origin && { origin, ...(content ? { content } : {}) }
}

/**
 * Of calls of ExitPlanMode: what the user was shown, else what the call shows, else what it answered. A call stands in the timeline once its
 * review is over; before that, and when it never was, there is the review alone.
 */
export async function plansOf(source: Source): Promise<PlanEntry[]> {
  const interactions = new Map(source.entities.interactions.map(each => [each.interactionId, each]))
  const calls: { readonly ordinal: number; readonly toolCallId: string; readonly plan: Found }[] = []
  for (const entry of source.entries) {
    if (!entry.planned) continue
    for (const turn of await turnItems(source, entry)) {
      const frames = turn.kind === 'turn' ? turn.steps.flatMap(step => step.frames) : []
      for (const frame of frames) {
        if (frame.kind !== 'tool' || frame.name !== 'ExitPlanMode') continue
        const plan = planOf(frame, interactions.get(frame.approvalId ?? ''))
        interactions.delete(frame.approvalId ?? '')
        if (plan) calls.push({ ordinal: entry.ordinal, toolCallId: frame.toolCallId, plan })
      }
    }
  }
  for (const interaction of interactions.values()) {
    const { toolName, turnId: ordinal } = (interaction.request ?? {}) as { readonly toolName?: string; readonly turnId?: number }
    const plan = toolName === 'ExitPlanMode' ? planOf({}, interaction) : undefined
    const { toolCallId } = interaction
    if (plan && ordinal !== undefined && toolCallId !== undefined) calls.push({ ordinal, toolCallId, plan })
  }
  calls.sort((a, b) => a.ordinal - b.ordinal)
  return calls.map(({ ordinal, toolCallId, plan }) => ({ tool_call_id: toolCallId, turn_id: turnId(ordinal), ...plan }))
}

type Found = Omit<PlanEntry, 'tool_call_id' | 'turn_id'>

function planOf({ display, output }: Pick<ToolFrame, 'display' | 'output'>, interaction: Interaction | undefined): Found | undefined {
  const request = interaction?.request as { readonly display?: unknown } | undefined
  const asked = shownPlan(request?.display)
  const review = interaction && reviewOf(interaction)
  if (asked) return { source: 'interaction', ...asked, ...(review ? { review } : {}) }
  const shown = shownPlan(display)
  if (shown) return { source: 'display', ...shown, ...(review ? { review } : {}) }
  const written = typeof output === 'string' ? writtenPlan(output) : undefined
  return written && { source: 'output', ...written, ...(review ? { review } : {}) }
}

function shownPlan(display: unknown): Pick<PlanEntry, 'plan' | 'path' | 'options'> | undefined {
  const { kind, plan, path, options } = (display ?? {}) as Readonly<Record<string, unknown>>
  if (kind !== 'plan_review' || typeof plan !== 'string' || plan.trim() === '') return undefined
  const offered = Array.isArray(options) ? (options as NonNullable<PlanEntry['options']>) : undefined
  return { plan, ...(typeof path === 'string' ? { path } : {}), ...(offered ? { options: offered } : {}) }
}

/** The result of the call names the file, and has the plan behind a heading; one that failed has none. */
function writtenPlan(text: string): Pick<PlanEntry, 'plan' | 'path'> | undefined {
  const path = /^Plan saved to: (.+)$/m.exec(text)?.[1]
  const heading = /^## (?:Approved Plan:|Plan \(auto-approved, not user-reviewed\):)\n/m.exec(text)
  const plan = heading && text.slice(heading.index + heading[0].length).trim()
  return plan ? { plan, ...(path === undefined ? {} : { path }) } : undefined
}

function reviewOf({ state, response }: Interaction): PlanEntry['review'] {
  if (state === 'answered' || state === 'dismissed') return undefined
  const { selectedLabel, feedback } = (response ?? {}) as { readonly selectedLabel?: string; readonly feedback?: string }
  return {
    state,
    ...(selectedLabel === undefined ? {} : { selected_option: selectedLabel }),
    ...(feedback === undefined ? {} : { feedback })
  }
}
