/** What the process of a pack calls by name: its context in the server, one call each. */
import { isDeepStrictEqual } from 'node:util'
import type {
  AnyRoute,
  Contribution,
  DocumentStore,
  EventSpec,
  FrameSpec,
  OutFrameSpec,
  PackContext,
  RequestInfo,
  StoreSpec,
  TapOptions
} from '../../../kernel/index.ts'
import { AppError, errorSpec, extensionPoint } from '../../../kernel/index.ts'
import { assertOutbound } from '../../llm/index.ts'
import { ProcessEnded } from './process.ts'
import { type Answer, Kept } from './values.ts'

/** The process of the pack ended while it answered. */
export const PackEnded = errorSpec('pack_ended', 50006, 'the pack that answers this has ended; try again')

type Fn = (...args: never[]) => unknown
type Handler = (input: unknown) => Promise<unknown>

interface DoorParts {
  readonly ctx: PackContext
  /** An exception that nobody caught: the process ends with it. */
  readonly escaped: (error: unknown) => void
}

export function createDoor({ ctx, escaped }: DoorParts): object {
  /** Whoever asked hears what became of it; the end of the process itself is told elsewhere. */
  const clear = (answer: Promise<unknown>) =>
    answer.catch((error: unknown) => {
      throw error instanceof ProcessEnded ? new AppError(PackEnded, { message: `pack ${ctx.name}: ${error.message}; try again` }) : error
    })
  const storeOf = (spec: StoreSpec, store: object) => {
    const methods = spec.kind === 'document' ? { ...store, exchange: exchanger(store as DocumentStore<unknown>) } : store
    return { id: new Kept(methods), names: Object.keys(methods) }
  }
  return {
    now: () => ctx.now(),
    newId: () => ctx.newId(),
    log: (level: 'info', facts: object, text?: string) => ctx.log[level](facts, text),
    operator: (level: 'info' | 'warn', facts: object, text: string) => ctx.operator[level](facts, text),
    blame: (pack: string | undefined, what: string, error: unknown, facts?: object) => ctx.blame(pack ?? ctx.name, what, error, facts),
    escaped,
    fail: (error: Error) => ctx.fail(error),
    route: (spec: AnyRoute, handler: Handler) => ctx.route(answered(spec), input => clear(handler(inputOf(input, spec))) as never),
    event(spec: EventSpec) {
      const emit = ctx.event(spec) as unknown as Fn & { undo: () => void }
      return { emit, undo: emit.undo }
    },
    on: (spec: EventSpec, listener: (event: unknown) => void) => ctx.on(spec, listener),
    frame: (spec: FrameSpec, handler: Handler, before?: Handler) =>
      ctx.frame(answered(spec), input => clear(handler(input)) as never, before && (raw => clear(before(raw)) as Promise<void>)),
    /** The guards of the server in front of requests to others. */
    outbound: (url: URL) => assertOutbound(url),
    outFrame: (spec: OutFrameSpec) => ctx.outFrame(spec),
    store: (spec: StoreSpec, place?: { readonly dir: string }) => storeOf(spec, ctx.store(spec, place)),
    storeAt: (spec: StoreSpec, dir: string) => storeOf(spec, ctx.storeAt(spec, dir)),
    streams: () => new Kept(ctx.streams),
    provide: (id: string, impl: object) => ctx.provide({ kind: 'service', id }, impl),
    contribute: (id: string, item: unknown) => ctx.contribute(extensionPoint(id), item),
    collect(id: string) {
      const list = ctx.collect(extensionPoint<unknown>(id))
      const kept = (item: unknown) => (typeof item === 'object' && item !== null ? new Kept(item) : item)
      const shown = ({ pack, item }: Contribution<unknown>) => ({ pack, item: kept(item) })
      return { items: () => list.items().map(kept), entries: () => list.entries().map(shown), away: () => list.away().map(shown) }
    },
    onChange: (id: string, listener: () => void) => ctx.collect(extensionPoint(id)).onChange(listener),
    tapKind: (hook: object | undefined): Answer => {
      if (!hook) return 'notify' // `tap` refuses it
      const kind = 'kind' in hook ? kernelKind(String((hook as { name?: unknown }).name)) : hook.constructor.name
      return kind.startsWith('Async') ? 'promise' : kind === 'SyncHook' ? 'notify' : 'now'
    },
    tap: (hook: { readonly kind?: string; readonly name: keyof PackContext['hooks'] } | undefined, fn: Fn, options?: TapOptions) =>
      ctx.tap(hook?.kind === 'hook' ? ctx.hooks[hook.name] : (hook as never), fn as never, options)
  }
}

/** Hooks of the kernel that only notify, at once; the others wait for their taps. */
const sync = ['subscribed', 'unsubscribed', 'closing', 'packState', 'afterRequest', 'event']
const kernelKind = (name: string) => (sync.includes(name) ? 'SyncHook' : 'AsyncSeriesHook')

function answered<S extends AnyRoute | FrameSpec>(spec: S): S {
  return { ...spec, errors: [...(spec.errors ?? []), PackEnded] }
}

interface Input {
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
  readonly request: RequestInfo
  readonly signal: AbortSignal
}

/** What the handler gets: a body that is looked at late is asked for. */
function inputOf(input: Input, spec: AnyRoute): object {
  const { params, query, request, signal } = input
  const { id, method, url, headers, remote_address, principal } = request
  const stream = spec.bodyType === 'stream' ? { stream: request.stream } : {}
  const asked = { params, query, request: { id, method, url, headers, remote_address, principal, ...stream }, signal }
  return spec.bodyCheck === 'late' ? { ...asked, late: () => input.body } : { ...asked, body: input.body }
}

/** Puts a document that nobody has changed meanwhile. */
function exchanger(store: DocumentStore<unknown>) {
  return async (id: string, before: unknown, after: unknown): Promise<boolean> => {
    let same = false
    await store.update(id, current => {
      same = isDeepStrictEqual(current, before)
      return same ? after : current
    })
    return same
  }
}
