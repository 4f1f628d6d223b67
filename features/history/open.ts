/** Opens the histories of agents: each from its own log, with the states and events that packs contributed. */
import { type Collection, derived, type JournaledEvent, type LogEntry, type LogRange, type PackContext } from '../../kernel/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { AgentLog } from './agent-log.ts'
import { AttachmentsSlot } from './attachments.ts'
import { logId, type WireLog } from './contract.ts'
import { savedPrompts } from './conversation-saved.ts'
import { copiedEpoch } from './copy.ts'
import { type HistoryRecord, lookersOf, looksAt, recordTypes, type StateSpec } from './define.ts'
import { AgentHistory } from './history.ts'
import { blobStore, Media, MediaCache } from './media.ts'
import { checkpoint, promptAccepted, stepBegin, stepEnd, told, toolBegin, toolResult, turnEnded, turnStarted } from './records.ts'
import { type EventDraft, HistoryStates, RecordEvents, type Teller } from './service.ts'
import { endOf } from './tail.ts'

/** Events of the session itself are about its main agent. */
const isAbout = ({ payload }: JournaledEvent, agent_id: string) => (payload.agentId ?? 'main') === agent_id

export function historyOpener(ctx: PackContext, logOf: (agent: AgentHost) => WireLog): (agent: AgentHost) => Promise<AgentHistory> {
  const states = ctx.collect(HistoryStates)
  const sources = ctx.collect(RecordEvents)
  const tellers = derived(
    () => [sources.entries(), sources.away()],
    () => tellersOf(sources)
  )
  ctx.own(tellers.forget)
  const tellersFor = lookersOf(tellers)
  /** Of the activation that there is now; undefined: the pack is gone for good, and so are its events. */
  const now = ({ teller }: EventDraft) => tellers().find(({ pack, nth }) => pack === teller.pack && nth === teller.nth)
  const away = (draft: EventDraft) => {
    const teller = now(draft)
    return teller !== undefined && (!teller.item || (teller.item.away?.(draft) ?? false))
  }
  const waiting = new Set<() => boolean>()
  const release = () => {
    for (const each of waiting) if (!each()) waiting.delete(each)
  }
  ctx.own(() => waiting.clear())
  // Behind the last of the items that a pack brings in one go.
  const soon = () => void (waiting.size > 0 && queueMicrotask(release))
  sources.onChange(soon)
  ctx.tap(ctx.hooks.packState, soon)
  const cache = new MediaCache()
  return agent => {
    const { session } = agent
    const whom = { id: agent.id, session_id: session.id }
    return AgentHistory.open({
      log: logOf(agent),
      logger: ctx.log,
      now: ctx.now,
      session_id: session.id,
      writable: session.writable,
      states: states.items(),
      media: new Media(agent.store(blobStore), cache, ctx.log, agent.get(AttachmentsSlot)),
      draft: (record, before) =>
        tellersFor(record).flatMap(teller => teller.events(record, before, whom).map(event => ({ ...event, teller }))),
      tell: draft => now(draft)?.item?.tell(agent, draft),
      away,
      waits: each => void waiting.add(each),
      known: draft => now(draft)?.item?.known?.(agent, draft),
      given: () => ctx.streams.watermark(session.id),
      flushed: () => ctx.streams.flushed(session.id),
      written: () => ctx.streams.written(session.id),
      async eventsAfter(mark) {
        // What a copy was told begins with its own journal, whichever that is.
        const slice = await ctx.streams.read(session.id, mark && mark.epoch !== copiedEpoch ? mark : { seq: 0 })
        if (!slice || slice.resync) return undefined
        const events = []
        for await (const event of slice.events) if (isAbout(event, agent.id)) events.push(event)
        return events
      }
    })
  }
}

/** Those that are there, and those whose packs are between two activations: what is on record meanwhile has its events all the same. */
function tellersOf(sources: Collection<RecordEvents>): readonly Teller[] {
  const counts = new Map<string, number>()
  const all = [...sources.entries().map(each => ({ ...each, isHere: true })), ...sources.away().map(each => ({ ...each, isHere: false }))]
  return all.map(({ pack, item, isHere }) => {
    const nth = counts.get(pack) ?? 0
    counts.set(pack, nth + 1)
    return { pack, nth, item: isHere ? item : undefined, records: item.records, events: item.events }
  })
}

/**
 * Whether the last record of a journal says that everything before it was told, the event journal still has it, and no turn is open: a mark
 * goes before records of a turn, too, and a kill may leave that much of their write, as a disk that refused the end of a turn does.
 */
export async function wasClosed(ctx: PackContext, agent: AgentHost, log: WireLog): Promise<boolean> {
  let marked = false
  for await (const { value, at } of log.scan(logId, { reverse: true })) {
    if (marked && inTurn.has(value.type)) return value.type === turnEnded.type
    if (marked) continue
    if (!told.is(value) || value.at !== at) return false
    if (value.epoch === copiedEpoch) return true
    const kept = ctx.streams.watermark(agent.session.id)
    if (kept?.epoch !== value.epoch || value.seq > kept.seq) return false
    marked = true
  }
  return true
}

/** What says whether a turn is open, and comes often enough that nobody looks far. */
const inTurn = recordTypes(turnStarted, turnEnded, stepBegin, stepEnd, toolBegin, toolResult)

/** Whether a prompt was accepted, as the journal says: its records back to the last checkpoint, which names those before. */
export async function hasPrompt(log: WireLog, prompt_id: string): Promise<boolean> {
  for await (const { value } of log.scan(logId, { reverse: true })) {
    if (promptAccepted.is(value) && value.prompt_id === prompt_id) return true
    const known = checkpoint.is(value) ? savedPrompts(value.states) : undefined
    if (known) return known.includes(prompt_id)
  }
  return false
}

/** A state as the journal in a directory says, without opening the history. `known`: as it was up to a position. */
export async function readStored<S>(
  ctx: PackContext,
  log: WireLog,
  spec: StateSpec<S>,
  known?: { readonly state: S; readonly end: number }
) {
  const { state, end } = (known && !spec.rewinds && (await continued(log, spec, known))) || (await readWhole(ctx, log, spec))
  const records = (range: LogRange) => log.scan(logId, { ...range, to: range.to ?? end }) as AsyncIterable<LogEntry<HistoryRecord>>
  return { state, end, records }
}

/** Undefined: the journal is another one. */
async function continued<S>(log: WireLog, spec: StateSpec<S>, { state: given, end: from }: { readonly state: S; readonly end: number }) {
  const to = await endOf(log)
  if (to < from) return undefined
  let state = given
  if (to > from) {
    for await (const { value, at } of log.scan(logId, { from, to })) {
      if (looksAt(spec, value)) state = spec.reduce(state, value)
      spec.located?.(state, value, at)
    }
  }
  return { state, end: to }
}

async function readWhole<S>(ctx: PackContext, log: WireLog, spec: StateSpec<S>) {
  const reader = new AgentLog({
    log,
    logger: ctx.log,
    now: ctx.now,
    writable: false,
    states: [spec as StateSpec<unknown>],
    draft: () => [],
    tell: () => undefined,
    given: () => undefined,
    written: () => undefined,
    lastMessage: () => ({ number: -1, time: 0 })
  })
  await reader.open()
  return { state: (await reader.track(spec)).value, end: reader.end }
}
