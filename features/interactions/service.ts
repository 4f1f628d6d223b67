/** Requests to the human: open until somebody answers, withdrawn with the turn. One broker for all kinds. */
import { type Static, serviceToken, type TObject, type TSchema } from '../../kernel/index.ts'
import type { AgentHost, Session } from '../sessions/index.ts'
import type { InteractionAsk, InteractionEnd, InteractionKind } from './kind.ts'

export interface Interactions {
  /**
   * Announces the request (work_changed first) and waits for its end: `withdrawn` when the signal aborts, when the kind is not there or leaves,
   * and when the disk refuses. Never rejects.
   */
  ask<Ask extends InteractionAsk, Q extends TObject, A extends TSchema>(
    kind: InteractionKind<Ask, Q, A>,
    ask: Ask,
    signal: AbortSignal
  ): Promise<InteractionEnd<Static<A>>>
  /** Open requests of all agents of a session in wire form, oldest first. */
  pending<Ask extends InteractionAsk, Q extends TObject, A extends TSchema>(
    session: Session,
    kind: InteractionKind<Ask, Q, A>
  ): readonly Static<Q>[]
  /** As `pending`, of all kinds that the session shows as this. */
  waiting(session: Session, pending: 'approval' | 'question'): readonly unknown[]
  /**
   * The open request, for routes that hold the answer against it. Throws SessionBusy (40901), what `missing` and `expired` of the kind say, and
   * AlreadyResolved (40902).
   */
  find<Ask extends InteractionAsk, Q extends TObject, A extends TSchema>(
    session: Session,
    kind: InteractionKind<Ask, Q, A>,
    id: string
  ): Static<Q>
  /**
   * The answer of the user; one of several counts. Returns the instant, ISO 8601. Throws as `find`, and 40001 for one that the kind does
   * not take.
   */
  answer<Ask extends InteractionAsk, Q extends TObject, A extends TSchema>(
    session: Session,
    kind: InteractionKind<Ask, Q, A>,
    id: string,
    answer: Static<A>
  ): Promise<string>
  /**
   * Ends the requests that a dead process left open as withdrawn, and answers the tool calls that waited for them. Called while the agent is
   * opened, before its turn is closed. Never rejects.
   */
  recover(agent: AgentHost): Promise<readonly string[]>
}

export const Interactions = serviceToken<Interactions>('interactions')
