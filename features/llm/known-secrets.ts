/** Takes secrets that are known out of a text that others wrote: upstreams like to quote what they were sent. */
import { isSecretName, isSecretParameter, REDACTED } from '../../kernel/index.ts'

/** Shorter ones would be found in ordinary words. */
const minChars = 4
/** From this length on the beginning of a secret is as good as the whole: texts are cut, keys are masked at their end. */
const longChars = 16
const headChars = 12
/** JSON inside of JSON: the text of an error in an error in an answer. */
const maxDepth = 4
/** A user name in a URL of this length is a token. */
const tokenChars = 12

/**
 * The text without the secrets, also where they are written for a URL, JSON, HTML or base64, and without what begins like a long one.
 * Undefined and very short ones are passed over. Values with a space (`Bearer <key>`) count by word, too.
 */
export function withoutSecrets(text: string, secrets: Iterable<string | undefined>): string {
  let clean = text
  for (const secret of longestFirst(secrets)) {
    if (isAbsent(clean, secret)) continue
    for (const form of formsOf(secret)) clean = clean.replaceAll(form, REDACTED)
    if (secret.length < longChars) continue
    for (const form of formsOf(secret)) clean = cutRuns(clean, form.slice(0, headChars), false)
    for (const core of base64Cores(secret.slice(0, headChars))) clean = cutRuns(clean, core, true)
    clean = withoutCutEnd(clean, secret)
  }
  return clean
}

/** Told by its first letters, which are the same in every spelling but base64: most of a long text has nothing of it. */
function isAbsent(text: string, secret: string): boolean {
  const start = /^[\w.-]+/.exec(secret)?.[0].slice(0, headChars) ?? ''
  const cores = secret.length < longChars ? [] : base64Cores(secret.slice(0, headChars))
  return start.length >= minChars && !text.includes(start.slice(0, minChars)) && !cores.some(core => text.includes(core))
}

/** A text that was cut off may end with the first characters of a secret. */
function withoutCutEnd(text: string, secret: string): string {
  const dots = ['…', '...'].find(end => text.endsWith(end)) ?? ''
  const said = text.slice(0, text.length - dots.length)
  for (let length = headChars - 1; length >= minChars; length--) {
    if (said.endsWith(secret.slice(0, length))) return said.slice(0, -length) + REDACTED + dots
  }
  return text
}

/** The secrets that a URL carries: password, a user name that is a token, parameters with a telling name. Empty for what is no URL. */
export function secretsIn(url: string | undefined): string[] {
  if (url === undefined || !URL.canParse(url)) return []
  const { username, password, searchParams } = new URL(url)
  const user = username.length < tokenChars ? [] : [username, decoded(username)]
  return [password, decoded(password), ...user, ...[...searchParams].flatMap(([name, value]) => (isSecretParameter(name) ? [value] : []))]
}

const plainHeaders = new Set(['accept', 'accept-encoding', 'content-type', 'user-agent'])

/**
 * The secrets of a request that an answer could repeat where data belongs, as a name of something: long ones only, for a short key may be
 * a word. Of headers with an ordinary name those whose value looks like a key.
 */
export function secretsSent(url: string, headers: Readonly<Record<string, string>>): string[] {
  const values = Object.entries(headers).flatMap(([name, value]) => {
    if (plainHeaders.has(name.toLowerCase())) return []
    return isSecretName(name) || looksLikeKey(value) ? value.split(/\s+/) : []
  })
  return [...values, ...secretsIn(url)].filter(({ length }) => length >= longChars)
}

/** Letters and digits in one word. */
function looksLikeKey(value: string): boolean {
  return /^(?=\S*[a-z])(?=\S*\d)\S+$/i.test(value)
}

function longestFirst(secrets: Iterable<string | undefined>): string[] {
  const all = [...secrets].flatMap(secret => (secret === undefined ? [] : [secret, ...secret.split(/\s+/).filter(isWord)]))
  return [...new Set(all.map(secret => secret.trim()))].filter(({ length }) => length >= minChars).sort((a, b) => b.length - a.length)
}

/** A scheme in front of a credential is none. */
const isWord = (word: string) => word.length >= longChars / 2

function formsOf(secret: string): string[] {
  const nested = [secret]
  for (let depth = 0; depth < maxDepth; depth++) nested.push(JSON.stringify(nested.at(-1)).slice(1, -1))
  const html = secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  return [
    ...new Set([
      ...nested,
      encodeURIComponent(secret),
      encodeURI(secret),
      html,
      html.replaceAll('"', '&quot;'),
      html.replaceAll('"', '&#34;').replaceAll("'", '&#39;')
    ])
  ]
}

/** Takes out `core` with everything up to the next delimiter; in base64 also what stands before it. */
function cutRuns(text: string, core: string, base64: boolean): string {
  if (!text.includes(core)) return text
  const literal = core.replace(/[^\w]/g, '\\$&')
  return text.replace(new RegExp(base64 ? `(?<![\\w+/-])[\\w+/-]*${literal}[\\w+/=-]*` : `${literal}[^\\s"'<>&,;\\\\]*`, 'g'), REDACTED)
}

/** How base64 writes the text, for each of the three places in a group of bytes at which it may begin. */
function base64Cores(text: string): string[] {
  return [0, 1, 2].flatMap(shift => {
    const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(text)])
    const core = bytes
      .subarray(0, bytes.length - (bytes.length % 3))
      .toString('base64')
      .slice(shift === 0 ? 0 : 4)
    return [core, core.replaceAll('+', '-').replaceAll('/', '_')]
  })
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text // a lone percent sign
  }
}
