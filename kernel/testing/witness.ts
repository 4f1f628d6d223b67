/** Whoever looks at all that the test clients of this process get: a check against the API documents. */
import type { AnyRoute, Method } from '../contract.ts'
import type { Declarations } from '../info.ts'
import type { Kernel } from '../kernel.ts'
import { draftEvent, frameLine } from '../realtime/event-frame.ts'
import type { EmittedEvent } from '../realtime/types.ts'

/** An answer, unread. */
export interface RawAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** An answer as a client got it. */
export interface SeenAnswer {
  readonly kernel: Kernel
  readonly method: string
  /** As it was sent, with its query. */
  readonly target: string
  /** Undefined: nothing is mounted there. */
  readonly route: AnyRoute | undefined
  readonly answer: RawAnswer
}

/** A frame as a client got it. */
export interface SeenFrame {
  /** What is on the wire now. */
  readonly declared: Declarations
  readonly frame: { readonly type: string }
  /** Of an ack: the type of the request that it answers; undefined when the client does not know. */
  readonly asked: string | undefined
}

export interface Witness {
  /** What is wrong with an answer; undefined when nothing is. */
  answer(seen: SeenAnswer): string | undefined
  /** The same for a frame. */
  frame(seen: SeenFrame): string | undefined
}

/** A kernel that clients of this process may talk to, and where faults go. */
interface Watched {
  readonly kernel: Kernel
  readonly blame: (fault: Error) => void
}

let witness: Witness | undefined
const watched = new Map<string, Watched>()

/** From now on `one` looks at what the clients of all test kernels of this process get; a fault that it finds fails the test of the kernel. */
export function useWitness(one: Witness): void {
  witness = one
}

/** Clients of this address are looked at until the undo is called. */
export function watch(url: string, kernel: Kernel, blame: (fault: Error) => void): () => void {
  const entry = { kernel, blame }
  watched.set(url, entry)
  return () => {
    if (watched.get(url) === entry) watched.delete(url)
  }
}

/** Call it when a request goes out, and what it returns with the answer: packs may come and go in between. */
export function witnessed(url: string, method: string, target: string): (answer: RawAnswer) => void {
  const at = witness && watched.get(url)
  if (!at) return () => undefined
  const find = () => at.kernel.routeAt(method as Method, target)
  const before = find()
  return answer => {
    const routes = new Set([before, find()])
    const faults = [...routes].map(route => witness?.answer({ kernel: at.kernel, method, target, route, answer }))
    if (!faults.includes(undefined)) at.blame(new Error(`${method} ${target.slice(0, 300)}: ${faults[0]}`))
  }
}

/** One connection: what its client sends, and what it gets. */
export interface WitnessedSocket {
  sent(frame: unknown): void
  got(frame: { readonly type: string; readonly id?: string | undefined }): void
}

const unwatched: WitnessedSocket = { sent: () => undefined, got: () => undefined }

/** What came from packs that have gone since is still on its way: so many earlier declarations count as well. */
const remembered = 8

export function witnessedSocket(url: string): WitnessedSocket {
  const at = witness && watched.get(url)
  if (!at) return unwatched
  const asked = new Map<string, string>()
  const known = [at.kernel.declarations()]
  return {
    sent(frame) {
      const { id, type } = (frame ?? {}) as { id?: unknown; type?: unknown }
      if (typeof id === 'string' && typeof type === 'string') asked.set(id, type)
    },
    got(frame) {
      const now = at.kernel.declarations()
      if (known[0] !== now) known.splice(0, known.length, now, ...known.slice(0, remembered))
      const request = frame.type === 'ack' && frame.id !== undefined ? asked.get(frame.id) : undefined
      let first: string | undefined
      for (const declared of known) {
        const fault = witness?.frame({ declared, frame, asked: request })
        if (fault === undefined) return
        first ??= fault
      }
      at.blame(new Error(`frame ${frame.type}${request === undefined ? '' : ` of ${request}`}: ${first}`))
    }
  }
}

/** So many events of a type and kernel are looked at as they are emitted; on sockets all are. */
const emittedPerType = 50

/** Listens to the events of a kernel that nobody may be subscribed to: each as the frame that it would be. */
export function witnessedEvents(kernel: Kernel, blame: (fault: Error) => void): (event: EmittedEvent) => void {
  const counts = new Map<string, number>()
  return ({ type, payload, session_id, subject, offset, at }) => {
    const count = (counts.get(type) ?? 0) + 1
    counts.set(type, count)
    if (!witness || count > emittedPerType) return
    const declared = kernel.declarations()
    const spec = declared.events.find(each => each.type === type)
    if (!spec) return // of a pack that has gone
    const about = { subject, at, rule: declared.subject }
    const draft = draftEvent(spec, payload, { session_id, ...(offset === undefined ? {} : { offset }) }, about)
    const frame = JSON.parse(frameLine(draft, 1, 'ep').toString()) as { readonly type: string }
    const fault = witness.frame({ declared, frame, asked: undefined })
    if (fault !== undefined) blame(new Error(`event ${type}: ${fault}`))
  }
}
