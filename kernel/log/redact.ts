/**
 * Takes secrets out of texts that nobody knows in advance: by the name in front of them, and by shape wherever they stand. One rule for
 * logs, texts and the configuration of which names say that a secret stands behind them.
 */
import { headOf } from '../text.ts'

/** Stands in the place of a secret. */
export const REDACTED = '[redacted]'

const endings =
  /(?:(?:api|access|private|secret|signing|encryption|serviceaccount)key|secret|password|passwd|passphrase|credential|authorization|cookie|jwt)(?:s|value|text|json|data)?$/
/** `tokens` alone counts what it holds: `max_tokens` is a number of them. */
const tokens = /(?:token(?:value)?|(?:^|access|refresh|auth|api|bearer|session)tokens)$/
const whole = new Set(['pat', 'serviceaccount', 'serviceaccountjson'])
/** Names that mean a secret in a URL only. */
const inUrl = /(?:key|sig|signature|^code|^auth)$/

/** `api_key`, `apiKey`, `client-secret`, `SEARCH_TOKEN`, `passwords`; not `has_api_key` or `max_tokens`. */
export function isSecretName(name: string): boolean {
  if (/^has(?:[_-]|[A-Z])/.test(name)) return false
  const plain = name.toLowerCase().replace(/[^a-z0-9]/g, '')
  return endings.test(plain) || tokens.test(plain) || whole.has(plain)
}

/** The same for a parameter of a URL: `key`, `subscription-key`, `sig`, `code` as well. */
export function isSecretParameter(name: string): boolean {
  return isSecretName(name) || inUrl.test(name.toLowerCase().replace(/[^a-z0-9]/g, ''))
}

/** Longer lines are cut to their head, so that no log call can fill the disk or stall on a pattern. */
const maxChars = 65_536
const headChars = 4_096

/** All patterns work on JSON text, where a quote inside a string is `\"`: what they take out are whole characters of it. */
const text = '"(?:[^"\\\\]|\\\\.)*"'
const number = '-?\\d[\\d.]*'
/** A string inside a string; an escaped quote of it is `\\\"`. */
const innerText = '\\\\"(?:[^"\\\\]|\\\\\\\\(?:\\\\.|[^"\\\\])|\\\\[^"\\\\])*\\\\"'
/** One character that is neither white space nor a delimiter. */
const char = '(?:[^\\s"\'<>\\\\]|\\\\[^nrt])'
const urlChar = '(?:[^\\s"\'<>\\\\&#;]|\\\\[^nrt])'

/** In every secret name, so that the others cost nothing. */
const hint = '(?=[\\w.-]{0,80}(?:key|token|secret|passw|passp|cred|auth|cookie|jwt|pat"|account))'

type Rule = readonly [RegExp, string | ((...found: string[]) => string)]

/** `"token":"..."`, also with a number or a flat list as value. */
const member: Rule = [
  new RegExp(`"${hint}([\\w.-]{1,80})"(\\s*:\\s*)(?:${text}|\\[(?:${text}|[^"\\[\\]{}])*\\]|${number})`, 'gi'),
  (whole = '', name = '', colon = '') => (isSecretName(name) ? `"${name}"${colon}"${REDACTED}"` : whole)
]

/** Headers, each the rest of its line. */
const headers: readonly Rule[] = [
  [/(?<![\w.])((?:proxy-)?authorization|(?:set-)?cookie|x-[\w-]{0,80}(?:key|token|secret)): *(?:[^"'\\]|\\[^nrt"])+/gi, `$1: ${REDACTED}`],
  [new RegExp(`\\bBearer\\s+${char}{6,}`, 'gi'), `Bearer ${REDACTED}`]
]

/** In sentences such a name is mostly a word: what stands behind it goes if it looks like a credential, and nothing further on. */
const credential = `(?=${char}*\\d|${char}{20})${char}{6,}`
const headersInProse: readonly Rule[] = [
  [new RegExp(`\\b([Aa]uthorization): *(?:Basic|Bearer|Token) +${char}{6,}`, 'g'), `$1: ${REDACTED}`],
  [new RegExp(`(?<![\\w.])(authorization|x-[\\w-]{0,80}(?:key|token|secret)): *${credential}`, 'gi'), `$1: ${REDACTED}`],
  [/(?<![\w.])((?:set-)?cookie): *[\w.-]+=[^\s"'\\;]+(?:; *[\w.-]+=[^\s"'\\;]+)*/gi, `$1: ${REDACTED}`],
  [new RegExp(`\\bBearer\\s+${credential}`, 'gi'), `Bearer ${REDACTED}`]
]

const rulesWith = (headers: readonly Rule[]): readonly Rule[] => [
  [
    new RegExp(`\\\\"([\\w.-]{1,80})\\\\"(\\s*:\\s*)(?:${innerText}|${number})`, 'g'),
    (whole = '', name = '', colon = '') => (isSecretName(name) ? `\\"${name}\\"${colon}\\"${REDACTED}\\"` : whole)
  ],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^"\\]|\\.)*?(?:-----END [A-Z ]*PRIVATE KEY-----|(?="))/g, REDACTED],
  ...headers,
  [/\bBasic\s+(?=[A-Za-z]*[\d+/=])[\w+/-]{8,}={0,2}/g, `Basic ${REDACTED}`],
  [/\b([\w-]{1,80}\.bearer\.)[\w.~+/=-]+/g, `$1${REDACTED}`],
  [/\b([a-z][a-z0-9+.-]{0,20}:\/\/)(?:[^/?#\s"'<>\\]|\\[^nrt])*@/gi, `$1${REDACTED}@`],
  [
    new RegExp(`([?&#;]([\\w.~%-]{1,60})=)${urlChar}+`, 'g'),
    (whole = '', head = '', name = '') => (isSecretParameter(name) ? head + REDACTED : whole)
  ],
  [
    new RegExp(`(?<![\\w-])(-{0,2}([a-z][\\w-]{0,60})=)(?:'[^'"\\\\]*'|${innerText}|${urlChar}+)`, 'gi'),
    (whole = '', head = '', name = '') => (isSecretName(name) ? head + REDACTED : whole)
  ],
  [
    new RegExp(`(?<![\\w-])(--([a-z][\\w-]{0,60}) +)(?!-)(?:'[^'"\\\\]*'|${innerText}|${char}+)`, 'gi'),
    (whole = '', head = '', name = '') => (isSecretName(name) ? head + REDACTED : whole)
  ],
  [/\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[a-z])[-_][\w-]{8,}/g, REDACTED],
  [/\bAIza[\w-]{30,}/g, REDACTED],
  [/\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g, REDACTED]
]

const rules = rulesWith(headers)
const rulesInProse = rulesWith(headersInProse)

/** Something of every rule; what a configuration holds is mostly without. */
const suspicious = /[=@"]|--|bearer|basic|authorization|cookie|x-|(?:[spr]k|gh[pos]|pat|xox[a-z])[-_]|AIza|eyJ/i

/** Takes and gives one line of JSON with its line end. */
export function redactLine(line: string): string {
  if (line.length <= maxChars) return apply([member, ...rules], line)
  const level = Number(/^\{"level":(\d+)/.exec(line)?.[1] ?? 50)
  const head = apply([member, ...rules], headOf(line, headChars))
  return `${JSON.stringify({ level, time: new Date().toISOString(), msg: `a log line of ${line.length} characters was cut`, head })}\n`
}

/**
 * A text without what looks like a secret: credentials in headers, URLs, assignments, JSON, keys of known shapes. `isProse`: sentences, in
 * which more is said behind the name of a header.
 */
export function redactText(given: string, isProse = false): string {
  if (!suspicious.test(given)) return given
  return JSON.parse(apply(isProse ? rulesInProse : rules, JSON.stringify(given))) as string
}

function apply(list: readonly Rule[], line: string): string {
  return list.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement as string), line) // or a function
}
