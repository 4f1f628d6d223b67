/** Texts derived from a prompt: the fallback title and `last_prompt`, with secrets masked. And the title that clients know. */
import { headOf, REDACTED, redactText, type Streams } from '../../kernel/index.ts'
import { sessionCreated, sessionMetaUpdated } from './contract.ts'

const titleChars = 200
const lastPromptChars = 4000

/** As people write it: `password: hunter2`. */
const assignment = /\b((?:api[_-]?)?key|token|secret|password)\s*[=:]\s*\S+/gi
/** Long runs of the characters that keys are made of, whatever they are called. */
const longRun = /[A-Za-z0-9+/_=-]{40,}/g

/** Masks what looks like a secret, drops control characters, collapses white space; at most `max` UTF-16 units, no half character. */
function sanitize(text: string, max: number): string {
  const masked = redactText(headOf(text, max * 4), true)
    .replace(assignment, `$1 ${REDACTED}`)
    .replace(longRun, REDACTED)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes
  const clean = masked.replace(/[\u0000-\u001f\u007f]+/g, ' ')
  return headOf(clean.replace(/\s+/g, ' ').trim(), max)
}

export const titleOf = (text: string): string => sanitize(text, titleChars)
export const lastPromptOf = (text: string): string => sanitize(text, lastPromptChars)

/** The title that clients of a session heard last. */
export async function titleHeard(streams: Pick<Streams, 'backwards'>, id: string): Promise<string | undefined> {
  for await (const { type, payload } of streams.backwards(id)) {
    if (type === sessionMetaUpdated.type && typeof payload.title === 'string') return payload.title
    if (type === sessionCreated.type) return (payload.session as { title: string }).title
  }
  return undefined
}
