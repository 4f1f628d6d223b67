/** What other packs get from peers: the other servers of the home, ways to their sessions, and a word with their packs. */
import { extensionPoint, serviceToken } from '../../kernel/index.ts'
import type { OwnerHook, Place } from './owner.ts'

export interface Peers {
  /** `server_id` of this server. */
  readonly server_id: string
  /** Other servers of the home that run on this machine, whether they answer or not. */
  servers(): readonly string[]
  /** It has said nothing for three seconds: it hangs, or it is being stopped. */
  silent(server_id: string): boolean
  /**
   * Bail. Something is about a session: a request whose path or query names it, a frame whose payload does, a subscription. A tap
   * that knows another server of the home which has it answers the way there; undefined: this one. A tap that fails, or takes longer than ten
   * seconds, fails the request. Without taps nobody is asked.
   */
  readonly owner: OwnerHook
  /** The way to a server; undefined when it is none of `servers`. */
  place(server_id: string): Place | undefined
  /** Tells the pack of the same topic at the other servers that are linked, or at one; in order, not twice, lost when the link breaks. */
  tell(topic: string, payload: unknown, server_id?: string): void
  /** Asks it. Rejects with the other side's text, and with `Unreached` when there was no answer. */
  ask(server_id: string, topic: string, payload: unknown): Promise<unknown>
}

export const Peers = serviceToken<Peers>('peers')

/** What a pack says to itself at other servers. Payloads are JSON. */
export interface PeerTopic {
  readonly topic: string
  /** The first other server of the home was found (true), or the last one is gone (false). */
  present?(others: boolean): void
  /** Another server is linked, also once more after a break: it knows nothing of what was told before. */
  joined?(server_id: string): void
  /** The link is broken, because that server is gone or hangs. `gone`: it has ended. */
  left?(server_id: string, gone: boolean): void
  told?(payload: unknown, from: string): void
  asked?(payload: unknown, from: string): unknown
}

export const PeerTopics = extensionPoint<PeerTopic>(
  'peer-topics',
  { present: 'notify', joined: 'notify', left: 'notify', told: 'notify', asked: 'promise' },
  { topic: 'string' },
  { present: () => undefined, joined: () => undefined, left: () => undefined, told: () => undefined }
)
