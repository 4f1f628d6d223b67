/** The services of the server as the pack gets them: listeners that it hands to them need not be asynchronous to cross. */
import type { Pack, ServiceToken } from '../../../kernel/index.ts'
import { membersOf } from '../../../kernel/lifecycle/faces.ts'

type Fn = (...args: unknown[]) => unknown

/** `services`: those of `needs`, and functions that answer those of `optional`. */
export function takingListeners({ needs, optional }: Pack, services: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const faces = new WeakMap<object, object>()
  const faceOf = ({ listening }: ServiceToken<unknown>, service: unknown) => {
    if (!listening || typeof service !== 'object' || service === null) return service
    const face = faces.get(service) ?? taking(service, Object.keys(listening))
    faces.set(service, face)
    return face
  }
  const given = (key: string) => services[key]
  return {
    ...Object.fromEntries(Object.entries(needs).map(([key, token]) => [key, faceOf(token, given(key))])),
    ...Object.fromEntries(Object.entries(optional).map(([key, token]) => [key, () => faceOf(token, (given(key) as Fn)())]))
  }
}

function taking(service: object, names: readonly string[]): object {
  return new Proxy(service, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function' || !names.includes(String(name))) return member
      return (...args: unknown[]) => (member as Fn)(...args.slice(0, -1), crossing(args.at(-1)))
    }
  })
}

/** An asynchronous function crosses everywhere, and the server looks at no answer but the promise. */
function crossing(listener: unknown): unknown {
  if (typeof listener === 'function') return async (...args: unknown[]) => await (listener as Fn)(...args)
  if (typeof listener !== 'object' || listener === null) return listener
  const crossed: Record<string, unknown> = {}
  for (const [name] of membersOf(listener)) {
    const member = (listener as Record<string, unknown>)[name]
    crossed[name] = typeof member === 'function' ? crossing(member.bind(listener)) : member
  }
  return crossed
}
