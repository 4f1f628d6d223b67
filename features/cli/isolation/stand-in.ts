/** Objects of the server, as a pack's process has them. */
import { Uncrossable } from './values.ts'

/** What a stand-in can be asked for: methods, with whether they are asynchronous, and properties. */
export interface Shape {
  readonly m: Readonly<Record<string, 'a' | 's'>>
  readonly p: readonly string[]
}

export function shapeOf(value: object): Shape {
  const m: Record<string, 'a' | 's'> = {}
  const p: string[] = []
  for (let at: object | null = value; at !== null && at !== Object.prototype && at !== Function.prototype; at = Object.getPrototypeOf(at)) {
    for (const [name, { value: member, get }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (name === 'constructor' || name in m || p.includes(name)) continue
      if (!get && typeof member === 'function') m[name] = member.constructor.name === 'AsyncFunction' ? 'a' : 's'
      else p.push(name)
    }
  }
  return { m, p }
}

interface Asking {
  call(method: string, args: readonly unknown[]): Promise<unknown>
  ask(member: { readonly method?: string; readonly property?: string }, args: readonly unknown[]): unknown
}

/** Stands for an object of the server. Each look at a property asks for it as it is then. */
export function standIn({ m, p }: Shape, { call, ask }: Asking): object {
  const methods: Record<string, unknown> = {}
  // A method that was taken off keeps its object: it is let go with the last of them.
  const of = (_self: object, name: string, kind: 'a' | 's', args: unknown[]) =>
    kind === 'a' ? call(name, args) : ask({ method: name }, args)
  for (const [name, kind] of Object.entries(m)) methods[name] = (...args: unknown[]) => of(self, name, kind, args)
  const read = (name: string | symbol) => {
    if (typeof name !== 'string') return undefined
    return Object.hasOwn(methods, name) ? methods[name] : p.includes(name) ? ask({ property: name }, []) : undefined
  }
  const names = [...p, ...Object.keys(methods)]
  const self = new Proxy(Object.create(null) as object, {
    get: (_, name) => read(name),
    has: (_, name) => names.includes(String(name)),
    ownKeys: () => names,
    getOwnPropertyDescriptor: (_, name) =>
      names.includes(String(name)) ? { value: read(name), configurable: true, enumerable: true, writable: false } : undefined,
    set: (_, name) => {
      throw new Uncrossable(String(name), 'belongs to the server and cannot be set from another process')
    }
  })
  return self
}
