/** Kinds of requests to the human: what the broker is told of approvals, questions and whatever else a pack lets people decide. */
import {
  type Detail,
  type ErrorSpec,
  type EventTarget,
  extensionPoint,
  type Static,
  type TObject,
  type TSchema
} from '../../kernel/index.ts'
import type { AgentHost } from '../sessions/index.ts'

/** Who asks; kinds add what they ask. */
export interface InteractionAsk {
  readonly agent: AgentHost
  readonly turn_id?: number
}

/** What the broker adds to what is asked. */
export interface RequestBase {
  /** `<name of the kind>_<uuid>` */
  readonly id: string
  readonly session_id: string
  /** ISO 8601, UTC. */
  readonly created_at: string
  /** Absent when the kind does not expire. */
  readonly expires_at?: string
}

/**
 * How a request ended that nobody answered. Withdrawn: with its turn, its session, its pack, or its process. Unattended: nobody was there to
 * answer; `fail`: the turn that waits is to fail.
 */
export type Unanswered = { readonly how: 'withdrawn' | 'expired' } | { readonly how: 'unattended'; readonly fail: boolean }

/** How a request ended. */
export type InteractionEnd<A> = { readonly how: 'answered'; readonly answer: A } | Unanswered

/** Why the turn failed whose request nobody was there to answer, as its tool call ends (`ToolResult.fail_turn`). `what`: "an approval". */
export function unattendedFailure(what: string): { readonly code: string; readonly message: string } {
  return { code: 'interaction.unattended', message: `nobody was there to answer ${what}` }
}

/** An event of a kind, not told yet. */
export interface InteractionEvent {
  readonly type: string
  readonly payload: Readonly<Record<string, unknown>>
}

/** One kind of request, declared once. Its wire shapes, codes and events are its owner's; everything that happens to a request is the broker's. */
export interface InteractionKind<Ask extends InteractionAsk, Q extends TObject, A extends TSchema> {
  /** Unique; in records, and in front of the ids. */
  readonly name: string
  /** What the session shows that it waits for (`pending_interaction`). */
  readonly pending: 'approval' | 'question'
  /** The request as clients get it, and as it is on record. */
  readonly request: Q
  /** The answer as it is on record. */
  readonly answer: A
  /** Answers for an unknown id, and for one that expired (with the shapes of `NotResolved`). */
  readonly missing: ErrorSpec
  readonly expired: ErrorSpec
  describe(ask: Ask, base: RequestBase): Static<Q>
  /** What is wrong with an answer to this request, by field: it is refused (40001), and the request stays open. Default: nothing. */
  faults?(ask: Ask, answer: Static<A>): readonly Detail[]
  /** Pure: the events follow from records, also after a crash. */
  asked(request: Static<Q>): InteractionEvent
  ended(id: string, end: InteractionEnd<Static<A>>, at: Date): InteractionEvent
}

export function defineInteraction<Ask extends InteractionAsk, Q extends TObject, A extends TSchema>(
  kind: InteractionKind<Ask, Q, A>
): InteractionKind<Ask, Q, A> {
  return kind
}

/** A kind whatever it asks; the broker hands each of its parts only what came from it. */
// biome-ignore lint/suspicious/noExplicitAny: see above
export type AnyInteractionKind = InteractionKind<any, any, any>

/** A kind that can be asked as long as its pack is there; requests that are open when it leaves are withdrawn. */
export interface InteractionSource {
  readonly kind: AnyInteractionKind
  /** An unanswered request expires after this time, ms (at most 2147483647). Absent: never. */
  readonly ttl_ms?: number
  /** Emits an event that `asked` or `ended` made. */
  tell(event: InteractionEvent, target: EventTarget): void
}
export const InteractionKinds = extensionPoint<InteractionSource>(
  'interaction-kinds',
  undefined,
  { kind: 'object', tell: 'function' },
  { tell: () => undefined }
)
