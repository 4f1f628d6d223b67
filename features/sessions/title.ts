/** Texts derived from a prompt: the fallback title and `last_prompt`, with secrets masked (engine notes on titles). */

const titleChars = 200
const lastPromptChars = 4000
const mask = '[redacted]'

const secrets: readonly RegExp[] = [
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  /\b(bearer)\s+[A-Za-z0-9._~+/=-]{8,}/gi,
  /\b((?:api[_-]?)?key|token|secret|password)\s*[=:]\s*\S+/gi,
  /\bsk-[A-Za-z0-9_-]{8,}/g,
  /[A-Za-z0-9+/_=-]{40,}/g
]

/** Masks what looks like a secret, drops control characters, collapses white space; at most `max` UTF-16 units. */
export function sanitize(text: string, max: number): string {
  let clean = text.slice(0, max * 4)
  for (const pattern of secrets) {
    clean = clean.replace(pattern, (_whole, word: unknown) =>
      typeof word === 'string' && /^[\w-]+$/.test(word) ? `${word} ${mask}` : mask
    )
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes
  clean = clean.replace(/[\u0000-\u001f\u007f]+/g, ' ')
  return [...clean.replace(/\s+/g, ' ').trim().slice(0, max)].join('')
}

export const titleOf = (text: string): string => sanitize(text, titleChars)
export const lastPromptOf = (text: string): string => sanitize(text, lastPromptChars)
