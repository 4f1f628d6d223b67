/** URLs as they are shown, without what is secret in them, and that put back into what somebody made of such a one. */
import { isSecretParameter } from '../../kernel/index.ts'

/** `user:password@host`: an address that lacks its scheme. */
const bare = /^(?!mailto:)[^\s/@:]*:[^\s/@]+@(?=\S*$)/i

/** URLs without user names, passwords and values of parameters with a telling name; they stay usable as addresses. */
export function redactUrls(given: string): string {
  if (!given.includes('://')) return given.replace(bare, '')
  return given
    .replace(/\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^/?#\s]*@/gi, '$1')
    .replace(/([?&#;]([\w.~%-]{1,60})=)[^&#;\s]+/g, (whole, head: string, name: string) => (isSecretParameter(name) ? head : whole))
}

/** Scheme, user name, host and what follows. A host that goes on behind a quote is no host that anybody knows; it has no `@`, so that each is tried once. */
const address = /\b([a-z][a-z0-9+.-]{0,20}:\/\/)([^/?#\s]*@)?([^/?#\s'"<>\\@]*)(?=[/?#\s]|$|['"<>](?:[\s,;)\]]|$))(\S*)/gi
const parameter = /([?&#;]([\w.~%-]{1,60})=)([^&#;\s]*)/g

/**
 * A text that somebody changed who saw `stored` by `redactUrls`, with what that took out of its URLs: a user name goes back to the scheme and host
 * that had it, a key to the parameter that is empty now. What was given anew counts, and another host gets nothing.
 */
export function restoreUrls(stored: string, given: string): string {
  const known = [...stored.matchAll(address)]
  // What is an address as a whole goes where its parser says, which leaves out line breaks and takes a quote for a part of the host.
  const target = hostOf(given)
  return given.replace(address, (whole, scheme: string, user: string | undefined, host: string, rest: string) => {
    const from = known.find(one => `${one[1]}${one[3]}`.toLowerCase() === `${scheme}${host}`.toLowerCase())
    if (!from || (target !== undefined && target !== hostOf(`${from[1]}${from[3]}`))) return whole
    const keys = new Map([...(from[4] ?? '').matchAll(parameter)].map(([, , name, value]) => [name, value]))
    const filled = rest.replace(parameter, (part: string, head: string, name: string, value: string) =>
      value === '' && isSecretParameter(name) ? head + (keys.get(name) ?? '') : part
    )
    return scheme + (user ?? from[2] ?? '') + host + filled
  })
}

/** Scheme and host of a text that is an address; undefined: it is none. */
function hostOf(text: string): string | undefined {
  const address = text.trim()
  if (!URL.canParse(address)) return undefined
  const { protocol, host } = new URL(address)
  return `${protocol}//${host}`
}
