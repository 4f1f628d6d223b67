/** What the events of agents should be by their records, and what they are: compared for every agent of a session at rest. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { Conversation } from '../../features/history/conversation.ts'
import { type HistoryRecord, RecordEvents } from '../../features/history/index.ts'
import { sessionMetaUpdated, statusChanged, workChanged } from '../../features/sessions/index.ts'
import { definePack } from '../../kernel/index.ts'
import { type Frame, startTestKernel, type TestContextLike } from '../../kernel/testing.ts'

/** The session tells these from its own state, too. */
const ofSession = new Set<string>([sessionMetaUpdated.type, workChanged.type, statusChanged.type])

export interface Told {
  readonly type: string
  readonly payload: Readonly<Record<string, unknown>>
}

/** Compares what a session told with the records of its agents, in order. Answers complaints. */
export type TellingJudge = (home: string, session_id: string) => Promise<string[]>

/** With the rules of all default packs. */
export async function tellingJudge(t: TestContextLike): Promise<TellingJudge> {
  let sources: () => readonly RecordEvents[] = () => []
  const collector = definePack({
    name: 'collector',
    setup(ctx) {
      const collected = ctx.collect(RecordEvents)
      sources = () => collected.items()
    }
  })
  await startTestKernel(t, { packs: [...(await loadDefaultPacks()), collector] })
  // Which events follow from records, the records themselves say: of all sessions so far.
  const types = new Set<string>()
  return async (home, session_id) => {
    const told = await eventFile(home, session_id)
    const journals = await journalsOf(home, session_id)
    const made = new Map([...journals].map(([id, { records }]) => [id, eventsFrom(records, sources(), { id, session_id })]))
    for (const { type } of [...made.values()].flat()) types.add(type)
    return [...made].flatMap(([id, expected]) => {
      const events = told.filter(({ type, payload }) => types.has(type) && (payload.agentId ?? 'main') === id)
      const texts = events.map(plain)
      return difference(texts, asTold(texts, expected.map(plain))).map(text => `agent ${id}: ${text}`)
    })
  }
}

function eventsFrom(
  records: readonly HistoryRecord[],
  sources: readonly RecordEvents[],
  agent: { id: string; session_id: string }
): Told[] {
  const before = new Conversation()
  const events = records.flatMap(record => {
    const made = sources.flatMap(source => source.events(record, before, agent))
    before.apply(record)
    return made
  })
  return events.filter(({ type }) => !ofSession.has(type))
}

function plain({ type, payload }: Told): string {
  const {
    agentId: _agent,
    sessionId: _session,
    type: _type,
    time: _time,
    ...own
  } = JSON.parse(JSON.stringify(payload)) as Record<string, unknown>
  return `${type} ${JSON.stringify(sorted(own))}`
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, sorted(inner)])
  )
}

/**
 * The end of a prompt is on record with the end of its turn, and told when the hooks of that have been heard: what others put on record
 * meanwhile is told before it. Never earlier than its record, and each once.
 */
function asTold(told: readonly string[], expected: readonly string[]): readonly string[] {
  const isEnd = (text = '') => /^prompt\.(completed|aborted) /.test(text)
  const order: string[] = []
  const held: string[] = []
  let next = 0
  for (const text of told) {
    while (isEnd(expected[next]) && expected[next] !== text) held.push(expected[next++] as string)
    const late = held.indexOf(text)
    if (late >= 0) order.push(...held.splice(late, 1))
    else if (next < expected.length) order.push(expected[next++] as string)
  }
  return [...order, ...held, ...expected.slice(next)]
}

function difference(told: readonly string[], expected: readonly string[]): string[] {
  const at = expected.findIndex((text, index) => text !== told[index])
  if (at < 0 && told.length === expected.length) return []
  const place = at < 0 ? expected.length : at
  const text = (list: readonly string[]) =>
    list
      .slice(place, place + 2)
      .map(each => each.slice(0, 300))
      .join(' | ') || 'nothing'
  return [`event ${place} of ${told.length} is ${text(told)}; the records say ${text(expected)}`]
}

/** Every event that is on disk. */
export async function eventFile(home: string, session_id: string): Promise<Frame[]> {
  const lines = (await readFile(join(home, 'server', 'events', `${session_id}.jsonl`), 'utf8')).trimEnd().split('\n')
  return lines.slice(1).map(line => JSON.parse(line) as Frame)
}

/** The records of each agent of a session. */
export async function journalsOf(home: string, session_id: string): Promise<Map<string, { file: string; records: HistoryRecord[] }>> {
  const found = new Map<string, { file: string; records: HistoryRecord[] }>()
  const groups = await readdir(join(home, 'sessions'))
  const dirs = groups.map(group => join(home, 'sessions', group, session_id, 'agents'))
  const files = await Promise.all(
    dirs.map(async dir => (await readdir(dir).catch(() => [])).map(id => ({ id, file: join(dir, id, 'wire.jsonl') })))
  )
  for (const { id, file } of files.flat()) {
    const lines = (await readFile(file, 'utf8').catch(() => '')).split('\n').filter(line => line !== '')
    found.set(id, { file, records: lines.map(line => JSON.parse(line) as HistoryRecord) })
  }
  return found
}
