/** Who has a session, when it is another server of the home: the way there, and what is done when that server is not to be reached. */
import { setTimeout as delay } from 'node:timers/promises'
import { AsyncSeriesBailHook } from 'tapable'
import { AppError, late, OwnerSilent, type RelayedClient, type RelayedReply, type Way, waitAtMost } from '../../kernel/index.ts'

/** Another server, as requests and connections reach it. */
export interface Place {
  /** Its `server_id`. */
  readonly id: string
  /**
   * As `Way.relay`. Rejects with `Unreached` when it cannot have got the request, or has lost the session (`movedStatus`) and no stream was sent;
   * then the caller looks anew for who has the session.
   */
  relay(...asked: Parameters<Way['relay']>): Promise<RelayedReply>
  /** Connects a client there. Rejects with `Unreached`. */
  connect(client: RelayedClient): Promise<RelayedEnd>
}

export interface RelayedEnd {
  send(data: Uint8Array, binary: boolean): void
  close(): void
}

/** The other server was not there, or had gone: it has not got what was to be sent. */
export class Unreached extends Error {
  /** It is there and says nothing: trying again at once is in vain. */
  readonly silent: boolean

  constructor(cause?: unknown, silent = false) {
    super('the other server cannot be reached', { cause })
    this.name = 'Unreached'
    this.silent = silent
  }
}

/** The server that has a session; undefined: this one, or nobody. */
export type FindOwner = (session_id: string) => Promise<Place | undefined>

/** See `Peers.owner`. */
export type OwnerHook = AsyncSeriesBailHook<[session_id: string], Place>
export const ownerHook = (): OwnerHook => new AsyncSeriesBailHook(['session_id'], 'sessionOwner')

/** What asks the taps of `Peers.owner`. Rejects with OwnerSilent when they take too long. */
export function ownerFinder(hook: OwnerHook): FindOwner {
  return async session_id => {
    const found = await waitAtMost(hook.promise(session_id), patienceMs)
    if (found === late) throw new AppError(OwnerSilent)
    return found
  }
}

/** See `Elsewhere.way`. */
export async function wayTo(session_id: string, find: FindOwner): Promise<Way | undefined> {
  let found = await find(session_id)
  if (!found) return undefined
  const again = async () => {
    const place = found ?? (await find(session_id))
    found = undefined
    return place
  }
  return {
    relay: (request, body, signal) =>
      atOwner(
        again,
        () => signal.aborted,
        place => place.relay(request, body, signal)
      )
  }
}

/** So long a session whose server cannot be reached is looked for. */
const patienceMs = 10_000

/**
 * Does something where the session is, when that is another server; undefined: it is here. What that server cannot have got is done at whoever
 * has the session by then. Rejects with OwnerSilent when nobody can be reached, at once when the client is `gone`.
 */
export async function atOwner<T>(
  find: () => Promise<Place | undefined>,
  gone: (cause: Unreached) => boolean,
  work: (place: Place) => Promise<T>
): Promise<T | undefined> {
  const deadline = performance.now() + patienceMs
  for (let pause = 10; ; pause = Math.min(pause * 2, 200)) {
    const place = await find()
    if (!place) return undefined
    try {
      return await work(place)
    } catch (cause) {
      if (!(cause instanceof Unreached)) throw cause
      if (performance.now() > deadline || gone(cause)) throw new AppError(OwnerSilent, { cause })
      await delay(pause)
    }
  }
}
