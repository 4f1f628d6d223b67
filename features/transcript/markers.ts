/** What stands between turns: markers and references to tasks, as they follow from single records. Pure. */
import { camelCase } from '../../kernel/index.ts'
import { compactionBegun, compactionBlockRecorded, compactionCancelRecorded } from '../compaction/index.ts'
import { cronFireRecorded } from '../cron/index.ts'
import { goalSet, goalSnapshotOf } from '../goals/index.ts'
import { coreRecord, type HistoryRecord, type Origin, textOf } from '../history/index.ts'
import { planEntered, planLeft, planRevised } from '../plan/index.ts'
import { swarmModeSet } from '../subagents/index.ts'
import { taskBegun } from '../tasks/index.ts'
import type { Op } from './shapes.ts'

type Payload = Readonly<Record<string, unknown>>

export function markersOf(record: HistoryRecord, position: number): readonly Op[] {
  const at = new Date(record.time ?? 0).toISOString()
  if (record.type === taskBegun.type && taskBegun.is(record)) {
    const { taskId } = record.info
    return [{ op: 'taskref.upsert', item: { kind: 'taskref', refId: `ref-${taskId}`, taskId, at } }]
  }
  return payloadsOf(record).map(([marker, payload], index) => ({
    op: 'marker.upsert',
    item: { kind: 'marker', markerId: index === 0 ? `m${position}` : `m${position}.${index}`, marker, payload: { ...payload }, at }
  }))
}

/** One for each skill or command with which a turn began, behind it. */
export function skillsOf(origin: Origin, position: number, at: string): readonly Op[] {
  const { kind, ...facts } = origin
  const given = Array.isArray(origin.skillActivations) ? (origin.skillActivations as Payload[]) : []
  const bundled = given.map(activation => ({ ...activation, trigger: 'user-slash' }))
  const one = kind === 'skill_activation' ? [facts] : kind === 'plugin_command' ? [{ ...facts, variant: 'plugin_command' }] : []
  return [...bundled, ...one].map((payload, index) => ({
    op: 'marker.upsert',
    item: { kind: 'marker', markerId: `m${position}.skill${index}`, marker: 'skill', payload: { ...payload }, at }
  }))
}

function payloadsOf(record: HistoryRecord): readonly (readonly [string, Payload])[] {
  const { type } = record
  if (type === compactionBegun.type && compactionBegun.is(record)) {
    const { trigger, instruction, turn_id: turnId } = record
    const started = ['compaction', { phase: 'started', trigger, ...(instruction === undefined ? {} : { instruction }) }] as const
    return turnId === undefined ? [started] : [started, ['compaction', { phase: 'blocked', turnId }]]
  }
  if (type === compactionBlockRecorded.type && compactionBlockRecorded.is(record))
    return [['compaction', { phase: 'blocked', turnId: record.turn_id }]]
  if (type === compactionCancelRecorded.type) return [['compaction', { phase: 'cancelled' }]]
  if (type === cronFireRecorded.type && cronFireRecorded.is(record)) return [['cron.fired', { ...record.origin, prompt: record.prompt }]]
  if (type === goalSet.type && goalSet.is(record)) {
    const { goal, change, time = 0 } = record
    const shown = goal ? { objective: goal.objective, status: goal.status } : { status: 'cleared' }
    const snapshot = goal ? goalSnapshotOf(goal, time, goal.cost_usd) : null
    return [['goal', { ...shown, snapshot, ...(change ? { change } : {}) }]]
  }
  if (type === planEntered.type && planEntered.is(record)) return [['plan.enter', { id: record.id, by: record.by }]]
  if (type === planLeft.type && planLeft.is(record)) return [['plan.exit', { id: record.id, how: record.how }]]
  if (type === planRevised.type && planRevised.is(record)) {
    const { id, version, path } = record
    return [['plan.revision', { id, version, path }]]
  }
  if (type === swarmModeSet.type && swarmModeSet.is(record)) {
    return [[record.on ? 'swarm.enter' : 'swarm.exit', { trigger: record.trigger }]]
  }
  const core = coreRecord(record)
  switch (core?.type) {
    case 'context.compacted':
      return core.result ? [['compaction', { phase: 'completed', result: resultOf(core.result) }]] : []
    case 'context.undone':
      return [['undo', { ...(core.turns === undefined ? {} : { turns: core.turns }) }]]
    case 'warning':
      return [noticeOf('warning', { code: core.code, message: core.message })]
    case 'failed': {
      const { code, message, name, details, retryable } = core
      return [noticeOf('error', { code, message, ...(name === undefined ? {} : { name }), ...(details ? { details } : {}), retryable })]
    }
    case 'turn.ended':
      return core.error ? [noticeOf('error', core.error)] : []
    case 'message': {
      const { origin, content } = core
      if (origin?.kind === 'skill_activation' && origin.trigger === 'model-tool') {
        const { kind: _kind, ...facts } = origin
        return [['skill', facts]]
      }
      if (origin?.kind !== 'hook_result') return []
      const blocked = origin.blocked ? { blocked: true } : {}
      return [['hook', { hookEvent: String(origin.event), content: textOf(content ?? []), ...blocked }]]
    }
    default:
      return []
  }
}

/** `event`: what the event of this level says. */
const noticeOf = (
  level: 'error' | 'warning',
  event: { readonly code: string; readonly message: string } & Payload
): readonly [string, Payload] => ['notice', { level, event: { ...event }, code: event.code, message: event.message }]

type Result = NonNullable<Extract<NonNullable<ReturnType<typeof coreRecord>>, { type: 'context.compacted' }>['result']>

function resultOf(result: Result): Payload {
  return Object.fromEntries(Object.entries(result).map(([key, value]) => [camelCase(key), value]))
}
