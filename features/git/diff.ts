/** fs:diff: a file against the last commit, as a unified diff. */
import { createHash } from 'node:crypto'
import { AppError, type DataOf, yieldToLoop } from '../../kernel/index.ts'
import type { Root } from '../file-search/index.ts'
import { missing, type Pin, pin } from '../fs/index.ts'
import { PathMissing } from '../workspaces/index.ts'
import { collect, type Repository } from './command.ts'
import type { diffFile } from './contract.ts'

/** Characters of one answer. */
const MAX_CHARS = 1024 * 1024
/** Bytes of a new file that are shown. */
const MAX_BYTES = MAX_CHARS * 4

/** Lines that are looked at before it yields to the loop. */
const SLICE_LINES = 1000
const lineBreak = 0x0a

/** Throws PathMissing (40409) for what is neither there nor tracked, PathOutside (41304). */
export async function diffOf(repository: Repository, root: Root, path: string, signal: AbortSignal): Promise<DataOf<typeof diffFile>> {
  const held = await pin(root, path).catch((error: unknown) => {
    if (AppError.is(error) && error.code === PathMissing.code) return undefined // deleted, perhaps
    throw error
  })
  try {
    const born = (await collect(repository, ['rev-parse', '--verify', '--quiet', 'HEAD'], signal, 1024, [0, 1])).text !== ''
    if (born) {
      const options = [
        '--no-ext-diff',
        '--no-textconv',
        '--no-color',
        '--find-renames',
        '--ignore-submodules=dirty',
        '--src-prefix=a/',
        '--dst-prefix=b/'
      ]
      const { text, cut } = await collect(repository, ['diff', ...options, 'HEAD', '--', path], signal, MAX_BYTES)
      if (text !== '') return bounded(path, text, cut)
    }
    const known = (await collect(repository, ['ls-files', '-z', '--', path], signal, 4096)).text !== ''
    if (known && born) return { path, diff: '', truncated: false }
    if (!held) throw missing(path)
    if (!held.stats.isFile()) return { path, diff: '', truncated: false }
    const added = await newFile(held, path)
    return bounded(path, added.text, added.cut)
  } finally {
    await held?.close()
  }
}

function bounded(path: string, text: string, cut: boolean): DataOf<typeof diffFile> {
  const long = text.length > MAX_CHARS
  // The last line of what is shown is whole.
  const diff = long || cut ? text.slice(0, text.lastIndexOf('\n', MAX_CHARS) + 1 || MAX_CHARS) : text
  return { path, diff, truncated: long || cut }
}

/** A file that git does not know, as git shows new files. It is read through the border of the workspace, and not by git. */
async function newFile(held: Pin, path: string): Promise<{ readonly text: string; readonly cut: boolean }> {
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
