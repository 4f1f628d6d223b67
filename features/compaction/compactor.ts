/** One compaction of one agent: begun, then done or cancelled, each on record, and told from there. */
import type { Accounts, Contribution, Logger } from '../../kernel/index.ts'
import { type Agent, type ErrorInfo, engineErrorOf, errorInfo } from '../agent/index.ts'
import {
  asData,
  contextCompacted,
  estimateMessage,
  failed,
  type History,
  type HistoryMessage,
  type HistoryRecord,
  tokensSpent
} from '../history/index.ts'
import type { LlmRequest, ResolvedModel, TokenUsage } from '../llm/index.ts'
import { keptInputs } from './cut.ts'
import { begun, cancelled } from './records.ts'
import type { CompactionNote } from './service.ts'
import { type SummaryPorts, summarise } from './summarise.ts'
import { summaryText } from './texts.ts'

export interface CompactorPorts extends SummaryPorts {
  readonly log: Logger
  readonly accounts: Accounts
  readonly notes: () => readonly Contribution<CompactionNote>[]
}

export interface CompactionInput {
  readonly agent: Agent
  readonly history: History
  /** Largest input in tokens, a part of which goes to what the user wrote. */
  window(model: ResolvedModel): number
  readonly instruction?: string
  /** The turn that waits for it; undefined: the user asked for it. */
  readonly turn_id?: number
}

/** `done`, `aborted` (the context is as it was), or why it failed. */
export type CompactionOutcome = 'done' | 'aborted' | ErrorInfo

/** `started` is called when its begin is on record. Rejects only when that cannot be recorded. */
export async function compact(
  ports: CompactorPorts,
  input: CompactionInput,
  signal: AbortSignal,
  started = () => {}
): Promise<CompactionOutcome> {
  const { history, instruction, turn_id } = input
  await history.append(
    begun.of({
      trigger: turn_id === undefined ? 'manual' : 'auto',
      ...(instruction === undefined ? {} : { instruction }),
      ...(turn_id === undefined ? {} : { turn_id })
    })
  )
  started()
  try {
    return await run(ports, input, signal)
  } catch (error) {
    const why = failureOf(
      engineErrorOf(error, err => ports.log.error({ err, session_id: input.agent.host.session.id }, 'a compaction failed unexpectedly'))
    )
    await cancel(ports, input, signal.aborted ? undefined : why)
    return signal.aborted ? 'aborted' : why
  }
}

async function run(ports: CompactorPorts, input: CompactionInput, signal: AbortSignal): Promise<CompactionOutcome> {
  const taken = await take(input)
  const summary = await summaryOf(ports, taken, input.instruction, signal)
  if (summary.end === undefined) return await replace(ports, input, taken, summary)
  const why = summary.end === 'aborted' ? undefined : summary.end
  await cancel(ports, input, why, summary.spent)
  return summary.end
}

/** A context at one moment. */
export interface Taken {
  /** As the next step would send it. */
  readonly request: LlmRequest
  readonly messages: readonly HistoryMessage[]
  /** Messages from this number on came later. */
  readonly end: number
  readonly compactions: number
}

/** Between two steps: every call has its result. */
export async function take({ agent, history }: Pick<CompactionInput, 'agent' | 'history'>): Promise<Taken> {
  const facts = { end: history.messages.next(), compactions: history.compactions() }
  const messages = await history.contextMessages()
  return { ...facts, messages, request: await agent.draft() }
}

/** `end`: why there is no summary. */
export type SummaryOf = { readonly spent: readonly HistoryRecord[] } & (
  | { readonly text: string; readonly dropped: number; readonly end?: undefined }
  | { readonly end: 'aborted' | ErrorInfo }
)

export async function summaryOf(
  ports: CompactorPorts,
  { request }: Taken,
  instruction: string | undefined,
  signal: AbortSignal
): Promise<SummaryOf> {
  const summary = await summarise(ports, { context: request, instruction }, signal)
  const spent = summary.usage.map((usage: TokenUsage) => tokensSpent.of({ model: request.model.alias, usage }))
  if ('error' in summary) return { spent, end: failureOf(errorInfo(summary.error)) }
  return 'aborted' in summary ? { spent, end: 'aborted' } : { ...summary, spent }
}

/** The summary takes the place of what it stands for; what came later stays behind it. Cancelled when that is not there any more. */
export async function replace(
  ports: CompactorPorts,
  input: CompactionInput,
  { messages: before, end, compactions, request }: Taken,
  { text, dropped, spent }: Extract<SummaryOf, { end?: undefined }>
): Promise<'done' | 'aborted'> {
  const { agent, history } = input
  const notes = await notesOf(ports, agent)
  const now = await history.contextMessages()
  if (history.compactions() !== compactions || now[before.length - 1]?.id !== before.at(-1)?.id) {
    await cancel(ports, input, undefined, spent)
    return 'aborted'
  }
  const rest = now.slice(before.length)
  const kept = keptInputs(before, input.window(request.model))
  const content = [{ type: 'text', text: summaryText(text, notes) }]
  const messages = [...kept.messages, { role: 'user' as const, content, origin: { kind: 'compaction_summary' } }]
  const tokens = tokensOf(rest)
  const result = {
    summary: text,
    compacted_count: before.length,
    tokens_before: history.contextSize().total,
    tokens_after: tokensOf(messages) + tokens,
    kept_user_message_count: kept.count,
    ...(kept.head === undefined ? {} : { kept_head_user_message_count: kept.head }),
    ...(dropped === 0 ? {} : { dropped_count: dropped })
  }
  const stays = rest.length === 0 ? {} : { rest: { from: end, tokens } }
  const written = await history.write(...spent, contextCompacted.of({ messages, ...stays, result }))
  agent.announce()
  written.tell()
  return 'done'
}

const tokensOf = (messages: readonly Parameters<typeof estimateMessage>[0][]) =>
  messages.reduce((sum, message) => sum + estimateMessage(message), 0)

/** Outside a turn clients are told why; a turn tells it with its own end. */
export async function cancel(
  { log }: CompactorPorts,
  { agent, history, turn_id }: CompactionInput,
  why: ErrorInfo | undefined,
  spent: readonly HistoryRecord[] = []
): Promise<void> {
  const told = why && turn_id === undefined ? [failed.of(why as Parameters<typeof failed.of>[0])] : []
  await history.append(...spent, cancelled.of({}), ...told).catch((err: unknown) => {
    // The next process closes it.
    log.error({ err, session_id: agent.host.session.id }, 'the end of a compaction could not be recorded')
  })
}

/** What is wrong with the login or the configuration says so itself. */
function failureOf(error: ErrorInfo): ErrorInfo {
  if (/^(auth|model)\.|^provider\.auth/.test(error.code) || error.code === 'compaction.failed') return error
  return { ...error, code: 'compaction.failed', message: `the context could not be compacted: ${error.message}` }
}

async function notesOf({ notes, accounts }: CompactorPorts, agent: Agent): Promise<string[]> {
  const texts: string[] = []
  for (const { pack, item } of notes()) {
    const what = `note for a summary ${item.name}`
    try {
      const text = await accounts.onAccountOf(pack, what, () => item.note(agent.host))
      if (text !== undefined && text.trim() !== '') texts.push(asData(text))
    } catch (err) {
      accounts.blame(pack, what, err, { session_id: agent.host.session.id })
    }
  }
  return texts
}
