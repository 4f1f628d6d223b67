/** What a pack's `setup` gets in a process of its own: the same calls, most of which are asked of the server. */
import { Readable } from 'node:stream'
import { assertFunction, assertItem } from '../../../kernel/declared.ts'
import type {
  Accounts,
  AnyRoute,
  Collection,
  ExtensionPoint,
  Logger,
  Operator,
  PackContext,
  ServiceToken,
  StoreSpec,
  TapPoints,
  Undo
} from '../../../kernel/index.ts'
import { guardedItems } from '../../../kernel/lifecycle/faces.ts'
import { Guard } from '../../../kernel/lifecycle/guard.ts'
import { type Scope, startChild, startTimer } from '../../../kernel/lifecycle/scope.ts'
import { waitAtMost } from '../../../kernel/lifecycle/wait.ts'
import type { StoreOf } from '../../../kernel/storage/ports.ts'
import { childStore } from './child-store.ts'
import type { Peer } from './peer.ts'
import { type Answers, Spec, Uncrossable } from './values.ts'

/** What the server tells of a pack that is to be set up. */
export interface Given {
  readonly name: string
  readonly config: unknown
  readonly home: string
  readonly hooks: readonly string[]
  /** Level of the log. */
  readonly level: string
}

interface ChildParts {
  readonly peer: Peer
  readonly log: Logger
  /** Of this activation. */
  readonly scope: Scope
  readonly graceMs: number
}

/** Time limit of a contributed function that is awaited, ms; the server's own packs have the same. */
const answerMs = 30_000

/** Faults are put down to the pack by the server. */
class TellingGuard extends Guard {
  readonly #tell: (what: string, error: unknown) => void

  constructor(log: Logger, tell: (what: string, error: unknown) => void) {
    super(log, { loopLimitMs: Number.POSITIVE_INFINITY })
    this.#tell = tell
  }

  override report(_pack: string, what: string, error: unknown): void {
    this.#tell(what, error)
  }
}

export function childContext({ name, config, home, hooks }: Given, { peer, log, scope, graceMs }: ChildParts): PackContext<never> {
  const ask = (method: string, args: readonly unknown[], answers?: Answers) => peer.ask(0, { method }, args, answers)
  const tell = (method: string, ...args: unknown[]) => peer.tell(0, method, args)
  const report = (what: string, error: unknown) => tell('blame', name, what, error)
  const guard = new TellingGuard(log, report)
  const undo = (answer: unknown) => answer as Undo
  const accounts: Accounts = {
    onAccountOf: (_pack, _what, work) => work(),
    blame: (pack, what, error, facts) => tell('blame', pack, what, error, facts)
  }
  const guarded = guardedItems(accounts, answerMs)
  const refuse = (what: string): never => {
    throw new Uncrossable(`ctx.${what}`, 'hangs on objects of the server: a pack that uses it cannot run in a process of its own')
  }
  /** A listener whose answer nobody waits for: what it throws is told as a fault of the pack, with the listener's name. */
  const heard =
    (what: string, fn: (...args: never[]) => unknown) =>
    (...args: never[]): void =>
      guard.tell(name, what, fn, ...args)
  const operator: Operator = {
    info: (facts, text) => tell('operator', 'info', facts, text),
    warn: (facts, text) => tell('operator', 'warn', facts, text)
  }
  const storeOf = <S extends StoreSpec>(method: string, spec: S, ...place: unknown[]): StoreOf<S> => {
    if (spec.migrate)
      throw new Uncrossable(`migrate of store ${spec.name}`, 'must answer at once, which a pack in a process of its own cannot')
    return childStore(peer, spec, ask(method, [new Spec(spec), ...place])) as StoreOf<S>
  }

  return {
    name,
    config: config as never,
    log,
    operator,
    home,
    signal: scope.signal,
    hooks: Object.freeze(
      Object.fromEntries(hooks.map(hook => [hook, Object.freeze({ kind: 'hook', name: hook })]))
    ) as unknown as TapPoints,
    get streams() {
      return ask('streams', []) as PackContext['streams']
    },
    get hosts() {
      return refuse('hosts')
    },
    now: () => ask('now', []) as Date,
    newId: () => ask('newId', []) as string,
    route(spec: AnyRoute, handler: (input: never) => unknown) {
      assertFunction(`the handler of ${spec.method} ${spec.path}`, handler)
      return undo(ask('route', [new Spec(spec), (input: Told) => handler(asInput(input) as never)], 'promise'))
    },
    event(spec) {
      const { emit, undo: take } = ask('event', [new Spec(spec)]) as { emit: (...args: unknown[]) => unknown; undo: Undo }
      return Object.assign((...args: unknown[]) => emit(...args), { undo: take }) as never // typed by the spec, in PackContext
    },
    on(spec, listener) {
      const what = `listener of ${spec.type}`
      assertFunction(`the ${what}`, listener)
      return undo(ask('on', [new Spec(spec), heard(what, listener)], 'notify'))
    },
    frame: (spec, handler, before) => undo(ask('frame', [new Spec(spec), handler, before], 'promise')),
    outFrame: spec => undo(ask('outFrame', [new Spec(spec)])),
    store: (spec, place) => storeOf('store', spec, place),
    storeAt: (spec, dir) => storeOf('storeAt', spec, dir),
    fence: () => refuse('fence'),
    provide<T>(token: ServiceToken<T>, impl: T) {
      return ask('provide', [token.id, provided(token.id, impl)]) as () => Promise<void>
    },
    contribute<T>(point: ExtensionPoint<T>, item: T) {
      assertItem(point, item)
      return undo(ask('contribute', [point.id, item], point.answers))
    },
    collect<T>(point: ExtensionPoint<T>) {
      const { items, entries, away } = ask('collect', [point.id]) as Omit<Collection<T>, 'onChange'>
      const lists = () => guarded(point, entries())
      const what = `change listener of ${point.id}`
      return {
        ...(point.instead ? { items: () => lists().items, entries: () => lists().entries } : { items, entries }),
        away: () => guarded(point, away()).entries,
        onChange(listener) {
          assertFunction(`the ${what}`, listener)
          return undo(ask('onChange', [point.id, heard(what, listener)], 'notify'))
        }
      }
    },
    slot: () => refuse('slot'),
    tap(hook, fn, options) {
      assertFunction('a tap', fn)
      const answer = ask('tapKind', [hook]) as Answers
      const tap =
        answer === 'notify' ? heard(`tap of ${(hook as { name?: string } | undefined)?.name ?? 'a hook'}`, fn as () => unknown) : fn
      return undo(ask('tap', [hook, tap, options], answer))
    },
    own: dispose => scope.own(dispose),
    timer(ms, work) {
      assertFunction('a timer', work)
      return startTimer({ pack: name, guard, scope }, ms, work)
    },
    spawn: (command, args = [], options = {}) => startChild({ pack: name, guard, scope }, command, args, options, graceMs / 2),
    ...accounts,
    fail: error => tell('fail', error),
    background(work) {
      const running = guard
        .run(name, 'background work', async () => await work(scope.signal))
        .catch((error: unknown) => {
          if (!scope.signal.aborted) report('background work', error)
        })
      const done = scope.own(() => waitAtMost(running, graceMs))
      void running.then(done)
    }
  }
}

interface Told {
  readonly request: object
  /** A body that is checked when it is looked at first. */
  readonly late?: () => unknown
}

function asInput(input: Told): object {
  const { late } = input
  if (late) Object.defineProperty(input, 'body', { get: late })
  if (!('stream' in input.request)) Object.defineProperty(input.request, 'stream', { get: () => Readable.from([]) })
  return input
}

/** A service: async functions, and values that do not change. */
function provided(id: string, impl: unknown): Record<string, unknown> {
  const service: Record<string, unknown> = {}
  for (let at = impl as object | null; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at) as object | null) {
    for (const [key, { value, get }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (key === 'constructor' || key in service) continue
      if (get)
        throw new Uncrossable(`${key} of the service '${id}'`, 'is computed at each look, which a pack in a process of its own cannot do')
      service[key] = typeof value === 'function' ? value.bind(impl) : value
      if (typeof value === 'function' && value.constructor.name !== 'AsyncFunction')
        throw new Uncrossable(`${key} of the service '${id}'`, 'must be an async function to be provided from a process of its own')
    }
  }
  return service
}
