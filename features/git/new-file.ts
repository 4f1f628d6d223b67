/** A file that git does not know, as git shows new files. It is read through the border of the workspace, and not by git. */
import { createHash } from 'node:crypto'
import { yieldToLoop } from '../../kernel/index.ts'
import type { Pin } from '../fs/index.ts'

/** Characters of one answer. */
export const MAX_CHARS = 1024 * 1024
/** Bytes of it that are looked at. */
export const MAX_BYTES = MAX_CHARS * 4

/** Lines that are looked at before it yields to the loop. */
const SLICE_LINES = 1000
const lineBreak = 0x0a

export async function newFile(held: Pin, path: string): Promise<{ readonly text: string; readonly cut: boolean }> {
  const file = await held.open()
  try {
    const { size } = await file.stat()
    const bytes = Buffer.alloc(Math.min(size, MAX_BYTES))
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0)
    const content = bytes.subarray(0, bytesRead)
    const cut = size > MAX_BYTES
    const id = cut
      ? ''
      : `index 0000000..${createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex').slice(0, 7)}\n`
    const mode = held.stats.mode & 0o111 ? '100755' : '100644'
    const head = `diff --git ${quoted(`a/${path}`)} ${quoted(`b/${path}`)}\nnew file mode ${mode}\n${id}`
    if (content.length === 0) return { text: head, cut }
    if (content.subarray(0, 8000).includes(0)) return { text: `${head}Binary files /dev/null and ${quoted(`b/${path}`)} differ\n`, cut }
    const { text: body, lines, whole } = await addedLines(content)
    const end = whole ? '' : '\n\\ No newline at end of file\n'
    const name = quoted(`b/${path}`)
    const label = name.includes(' ') ? `${name}\t` : name // where it ends, as git says it
    return { text: `${head}--- /dev/null\n+++ ${label}\n@@ -0,0 +${lines === 1 ? '1' : `1,${lines}`} @@\n${body}${end}`, cut }
  } finally {
    await file.close()
  }
}

/** Lines with a plus before each, as far as an answer shows them, and how many there are. `whole`: the last one ends with a line break. */
async function addedLines(content: Buffer): Promise<{ readonly text: string; readonly lines: number; readonly whole: boolean }> {
  const whole = content.at(-1) === lineBreak
  let text = ''
  let lines = whole ? 0 : 1
  for (let line = 0; line < content.length; ) {
    await yieldToLoop()
    const shown: string[] = []
    for (let seen = 0; seen < SLICE_LINES && line < content.length; seen++) {
      const end = content.indexOf(lineBreak, line)
      const next = end < 0 ? content.length : end + 1
      if (text.length <= MAX_CHARS) shown.push(content.toString('utf8', line, next))
      if (end >= 0) lines++
      line = next
    }
    if (shown.length > 0) text += `+${shown.join('+')}`
  }
  return { text, lines, whole }
}

/** A name as git writes it: with quotes where a control character, a quote or a backslash is in it. */
function quoted(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (!/[\u0000-\u001f"\\\u007f]/.test(name)) return name
  const short: Readonly<Record<string, string>> = { '\n': '\\n', '\t': '\\t', '\r': '\\r', '"': '\\"', '\\': '\\\\' }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the same
  const escaped = name.replace(/[\u0000-\u001f"\\\u007f]/g, char => short[char] ?? `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`)
  return `"${escaped}"`
}
