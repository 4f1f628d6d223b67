/** Typed references by which packs find each other: services (one provider) and extension points (many contributors). */

/** Reference to a service: its id at run time, its type at compile time. Two references with one id are the same service. */
export interface ServiceToken<T> {
  readonly kind: 'service'
  readonly id: string
  /** Never set; carries the type. */
  readonly type?: T
}

/** Reference to a live list that any pack may contribute to. */
export interface ExtensionPoint<T> {
  readonly kind: 'point'
  readonly id: string
  /** Never set; carries the type. */
  readonly type?: T
}

/** Declares a service. One pack of a deployment provides it (`ctx.provide`); others name it in `needs` or `optional`. */
export function serviceToken<T>(id: string): ServiceToken<T> {
  return { kind: 'service', id }
}

/** Declares an extension point. Items appear with `ctx.contribute` and leave with their pack; readers use `ctx.collect`. */
export function extensionPoint<T>(id: string): ExtensionPoint<T> {
  return { kind: 'point', id }
}

export type Needs = Readonly<Record<string, ServiceToken<unknown>>>

/** What `setup` receives for `needs`: the services themselves. */
export type Resolved<N extends Needs> = { readonly [K in keyof N]: N[K] extends ServiceToken<infer T> ? T : never }

/** What `setup` receives for `optional`: functions that return the service, or undefined while nobody provides it. */
export type ResolvedOptional<N extends Needs> = {
  readonly [K in keyof N]: N[K] extends ServiceToken<infer T> ? () => T | undefined : never
}
