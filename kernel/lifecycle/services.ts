/** How packs find each other: services (one provider) and extension points (many contributors, with change notice), by typed tokens. */

/** Reference to a service: its id at run time, its type at compile time. Two references with one id are the same service. */
export interface ServiceToken<T> {
  readonly kind: 'service'
  readonly id: string
  /** See `Listening`. */
  readonly listening?: Listening | undefined
  /** Never set; carries the type. */
  readonly type?: T
}

/**
 * By the name of a function of a service that takes a listener: whether that is awaited (`promise`, within a time limit) or nobody looks at its
 * answer (`notify`). The listener is the last argument, a function or an object of functions; what is answered is its undo, or a promise of it.
 * A pack that uses the service hands in what is guarded: a failure is put down to that pack and reaches nobody, and the listener goes with it.
 */
export type Listening<T = Record<string, unknown>> = { readonly [K in keyof T]?: 'notify' | 'promise' }

/**
 * By the name of a function: `promise`, it is awaited; `iterable`, it answers with an asynchronous list; `notify`, nobody looks at the
 * answer; `now`, it must answer at once.
 */
export type Answers = Readonly<Record<string, 'promise' | 'iterable' | 'notify' | 'now'>>

/** What an item must have, by name; `set?`: a Set, or nothing. */
export type Parts = Readonly<Record<string, 'string' | 'number' | 'boolean' | 'object' | 'function' | 'set?'>>

/**
 * By the name of a function of an item: what stands for its answer when it throws or rejects, made from the same arguments (`this` is the
 * item). Whoever collects the items gets these functions guarded: a failure is put down to the pack of the item and reaches nobody.
 */
export type Instead<T> = {
  readonly [K in keyof T]?: T[K] extends ((...args: infer A) => infer R) | undefined ? (this: T, ...args: A) => R : never
}

/** Reference to a live list that any pack may contribute to. */
export interface ExtensionPoint<T> {
  readonly kind: 'point'
  readonly id: string
  /**
   * How functions of its items, and of what these answer, are asked; packs in processes of their own can contribute those that need not
   * answer at once.
   */
  readonly answers?: Answers | undefined
  /** Looked at when an item is contributed: one that lacks a part is the fault of its pack, not of whoever asks the items. */
  readonly parts?: Parts | undefined
  /** See `Instead`. Functions that it does not name are called as they are. */
  readonly instead?: Readonly<Record<string, (...args: never[]) => unknown>> | undefined
  /** Never set; carries the type. */
  readonly type?: T
}

/** Declares a service. One pack of a deployment provides it (`ctx.provide`); others name it in `needs` or `optional`. */
export function serviceToken<T>(id: string, listening?: Listening<T>): ServiceToken<T> {
  return { kind: 'service', id, ...(listening && { listening }) }
}

/** Declares an extension point. Items appear with `ctx.contribute` and leave with their pack; readers use `ctx.collect`. */
export function extensionPoint<T>(id: string, answers?: Answers, parts?: Parts, instead?: Instead<T>): ExtensionPoint<T> {
  return { kind: 'point', id, ...(answers && { answers }), ...(parts && { parts }), ...(instead && { instead: instead as never }) } // typed above
}

export type Needs = Readonly<Record<string, ServiceToken<unknown>>>

/** What `setup` receives for `needs`: the services themselves. */
export type Resolved<N extends Needs> = { readonly [K in keyof N]: N[K] extends ServiceToken<infer T> ? T : never }

/**
 * What `setup` receives for `optional`: functions that return the service, or undefined while nobody provides it and as soon as its
 * provider begins to leave.
 */
export type ResolvedOptional<N extends Needs> = {
  readonly [K in keyof N]: N[K] extends ServiceToken<infer T> ? () => T | undefined : never
}

export interface Contribution<T> {
  readonly pack: string
  readonly item: T
  /** Aborts (reason `pack_inactive`) when the item is withdrawn: its pack unloads, or took it back. */
  readonly signal: AbortSignal
}

/** Live list behind an extension point. */
export interface Collection<T> {
  /** Items in activation order of their packs; as `entries`, the same list until one comes or goes. */
  items(): readonly T[]
  /** The same with the pack that contributed each, for logs. */
  entries(): readonly Contribution<T>[]
  /** Items that went with packs which are between two activations, as they were; until the pack is back, or turns out not to come. */
  away(): readonly Contribution<T>[]
  /** Called after every change, until the returned undo or the pack's end. */
  onChange(listener: () => void): () => void
}

export interface Derived<T> {
  (): T
  /** For `ctx.own`: what it was made from belongs to other packs, and stays in memory as long as it is known here. */
  readonly forget: () => void
}

/**
 * What follows from things that seldom change, and is asked for often: made anew when one of `from` is another one than last time. Those are
 * compared by identity: revisions, texts, lists of contributed items.
 */
export function derived<T>(from: () => readonly unknown[], make: () => T): Derived<T> {
  let last: { readonly from: readonly unknown[]; readonly value: T } | undefined
  const value = () => {
    const now = from()
    if (!last || now.some((each, at) => each !== last?.from[at])) last = { from: now, value: make() }
    return last.value
  }
  const forget = () => {
    last = undefined
  }
  return Object.assign(value, { forget })
}

/** What packs answer for that hand something in: who calls it keeps their accounts. */
export interface Accounts {
  /**
   * Calls what another pack handed in (`Contribution.pack`) on that pack's account: how long it holds the event loop is counted for it.
   * Answers and throws what it does.
   */
  onAccountOf<T>(pack: string, what: string, work: () => T): T
  /** Puts a failure of what another pack handed in down to it: logged with `facts`, shown in `meta.features`. `what` failed: `prompt block rules`. */
  blame(pack: string, what: string, error: unknown, facts?: object): void
}

/** All that the items answer, in their order; one that throws is put down to its pack and answers nothing. `what` names an item: `skill source x`. */
export function askEach<T, R>(
  entries: readonly Contribution<T>[],
  accounts: Accounts,
  what: (item: T) => string,
  ask: (item: T) => readonly R[]
): R[] {
  return entries.flatMap(({ pack, item }) => {
    try {
      return accounts.onAccountOf(pack, what(item), () => [...ask(item)])
    } catch (error) {
      accounts.blame(pack, what(item), error)
      return []
    }
  })
}
