/** The secrets of this home, and texts without them. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import { isSecretName, readBounded, redactLine, redactText, yieldToLoop } from '../../kernel/index.ts'
import { secretsIn, withoutSecrets } from '../llm/index.ts'

/** Shorter ones would be found in ordinary words. */
const minChars = 8
/** What is looked at in one go, in UTF-16 units. */
const blockChars = 64 * 1024
/** A line that does not end is cut, at least this much before what is there, where no secret lies on the cut. */
const holdChars = 4096
/** Between places where it may be cut. */
const stepChars = 500

/** Every text that stands under a name of a secret, and what URLs carry. */
export function secretsOf(value: unknown, name = ''): string[] {
  if (typeof value === 'string') return isSecretName(name) ? [value] : secretsIn(value)
  if (typeof value !== 'object' || value === null) return []
  const below = isSecretName(name) || name === 'headers' || name === 'custom_headers' || name === 'env'
  return Object.entries(value).flatMap(([key, item]) => (below && typeof item === 'string' ? [item] : secretsOf(item, key)))
}

/** The token of the server and the tokens of logins. */
export async function secretsOnDisk(home: string): Promise<string[]> {
  const token = await textOf(join(home, 'server.token')) // a server may have none
  const dir = join(home, 'credentials')
  const found = [token.trim()]
  const files = await readdir(dir, { recursive: true }).catch(() => []) // nobody logged in
  for (const file of files) {
    const text = await textOf(join(dir, file)) // it may be a directory
    try {
      found.push(...secretsOf(JSON.parse(text)))
    } catch {
      // no JSON: nothing that was kept for a login
    }
  }
  return found
}

/** Empty for what is no file, and for one that is too large to have been kept for a login. */
const textOf = (file: string) => readBounded(file, 1024 * 1024).then(String, () => '')

/** Chunks of a text file, without secrets. `json`: each line is JSON and stays it; a last line without an end is left out of a journal. */
export async function* withoutThem(
  chunks: AsyncIterable<Buffer>,
  secrets: readonly string[],
  kind: 'json' | 'journal' | 'text'
): AsyncGenerator<Buffer> {
  const known = [...new Set(secrets)].filter(({ length }) => length >= minChars)
  const decoder = new StringDecoder('utf8')
  let rest = ''
  /** The line that `rest` goes on with was cut. */
  let inside = false
  for await (const chunk of chunks) {
    rest += decoder.write(chunk)
    while (rest.length >= blockChars) {
      const end = rest.lastIndexOf('\n', rest.length - 1) + 1
      const to = end > 0 ? end : cutOf(rest, known)
      yield await cleaned(rest.slice(0, to), known, kind, inside, end === 0)
      inside = end === 0
      rest = rest.slice(to)
    }
  }
  rest += decoder.end()
  if (kind === 'journal') rest = rest.slice(0, rest.lastIndexOf('\n') + 1)
  if (rest !== '') yield await cleaned(rest, known, kind, inside, false)
}

/** Where a long line is cut: both sides by themselves are without secrets as the whole is. */
function cutOf(text: string, known: readonly string[]): number {
  const last = text.length - holdChars
  for (let at = last; at > last - 2 * holdChars; at -= stepChars) {
    const [before, behind] = [text.slice(at - holdChars, at), text.slice(at, at + holdChars)]
    if (withoutSecrets(before + behind, known) === withoutSecrets(before, known) + withoutSecrets(behind, known)) return at
  }
  return last
}

/** A piece of a line, at the beginning or end of the block, is looked at for known secrets only. */
async function cleaned(block: string, known: readonly string[], kind: string, fromInside: boolean, toInside: boolean): Promise<Buffer> {
  const lines = withoutSecrets(block, known).split(/(?<=\n)/)
  for (const [at, line] of lines.entries()) {
    const isWhole = !(at === 0 && fromInside) && !(at === lines.length - 1 && toInside)
    if (isWhole && line.length < blockChars) lines[at] = kind === 'text' ? redactText(line) : redactLine(line)
    await yieldToLoop()
  }
  return Buffer.from(lines.join(''))
}
