/** The conversation as a checkpoint holds it. */
import type { LlmToolCall } from '../llm/index.ts'
import { Conversation, type KnownPrompt, type Reminder } from './conversation.ts'
import type { StateSpec } from './define.ts'

interface Saved
  extends Pick<
    Conversation,
    | 'turn'
    | 'turns'
    | 'usage'
    | 'usageByModel'
    | 'openStep'
    | 'messages'
    | 'located'
    | 'context'
    | 'tokens'
    | 'openings'
    | 'prompt'
    | 'openingsLost'
    | 'compactions'
    | 'undone'
    | 'lastTime'
  > {
  readonly prompts: readonly KnownPrompt[]
  readonly openCalls: readonly LlmToolCall[]
  readonly begun: readonly string[]
  /** Base64 of 32-bit numbers in the byte order of this machine. */
  readonly callIds: string
  readonly index: readonly number[]
  readonly named: readonly [string, number][]
  readonly hidden: readonly [number, number][]
  readonly reminders: readonly [string, readonly Reminder[]][]
}

/** JSON. */
export function saveConversation(from: Conversation): unknown {
  return {
    prompts: [...from.prompts.values()],
    ...(from.turn ? { turn: from.turn } : {}),
    turns: from.turns,
    usage: from.usage,
    usageByModel: from.usageByModel,
    ...(from.openStep ? { openStep: from.openStep } : {}),
    openCalls: [...from.openCalls.values()],
    begun: [...from.begun],
    callIds: Buffer.from(Uint32Array.from(from.callIds).buffer).toString('base64'),
    messages: from.messages,
    located: from.located,
    index: from.index,
    named: [...from.named],
    hidden: from.hidden,
    context: from.context,
    tokens: from.tokens,
    openings: from.openings,
    ...(from.prompt === undefined ? {} : { prompt: from.prompt }),
    openingsLost: from.openingsLost,
    compactions: from.compactions,
    ...(from.undone ? { undone: from.undone } : {}),
    reminders: [...from.reminders],
    lastTime: from.lastTime
  }
}

function load(given: unknown): Conversation {
  const saved = given as Saved // what `save` made; a damaged line of the journal is left out before
  const made = new Conversation()
  for (const prompt of saved.prompts) made.prompts.set(prompt.prompt_id, prompt)
  made.turn = saved.turn
  made.turns = saved.turns
  made.usage = saved.usage
  made.usageByModel = saved.usageByModel
  made.openStep = saved.openStep
  made.openCalls = new Map(saved.openCalls.map(call => [call.id, call]))
  made.begun = new Set(saved.begun)
  const bytes = Uint8Array.from(Buffer.from(saved.callIds, 'base64'))
  for (const hash of new Uint32Array(bytes.buffer)) made.callIds.add(hash)
  made.messages = saved.messages
  made.located = saved.located
  made.index.push(...saved.index)
  for (const [id, number] of saved.named) made.named.set(id, number)
  made.hidden.push(...saved.hidden)
  made.context = saved.context
  made.tokens = saved.tokens
  made.openings = [...saved.openings]
  made.prompt = saved.prompt
  made.openingsLost = saved.openingsLost
  made.compactions = saved.compactions
  made.undone = saved.undone
  for (const [variant, all] of saved.reminders) made.reminders.set(variant, all)
  made.lastTime = saved.lastTime
  return made
}

export const conversationState: StateSpec<Conversation> = {
  name: 'conversation',
  version: 4,
  initial: () => new Conversation(),
  reduce(state, record) {
    state.apply(record)
    return state
  },
  located: (state, record, at) => state.place(record, at),
  save: saveConversation,
  load
}

/** Ids of the prompts that a checkpoint knows; undefined when it does not hold them as this version does. */
export function savedPrompts(
  states: Readonly<Record<string, { readonly version: number; readonly value?: unknown }>>
): string[] | undefined {
  const saved = states[conversationState.name]
  return saved?.version === conversationState.version ? (saved.value as Saved).prompts.map(({ prompt_id }) => prompt_id) : undefined
}
