/** Collects what changes in a document and puts it in: edits, new lines of tables that are there, new tables. */
import { cut, recut } from './toml-cut.ts'
import { isHeader } from './toml-scan.ts'
import { Segment } from './toml-segment.ts'
import { find, type Node, type Path, startsWith } from './toml-tree.ts'
import { keyText } from './toml-value.ts'

/** Replaces `[start, end)` of a segment; insertions have no extent. Edits at one place apply in their order. */
interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** A place in a segment. */
interface Place {
  readonly segment: number
  readonly at: number
}

export class Edits {
  readonly segments: readonly Segment[]
  readonly newline: string
  readonly #root: Node
  /** By segment. */
  readonly #edits = new Map<number, Edit[]>()
  readonly #lines = new Map<number, string[]>()
  /** New tables by their header. */
  readonly #blocks = new Map<string, { path: Path; array: boolean; lines: string[] }>()
  readonly #renamed: { readonly path: Path; readonly to: string }[] = []

  constructor(segments: readonly Segment[], root: Node) {
    this.segments = endingInLine(segments)
    this.#root = root
    this.newline = segments.some(({ text }) => text.includes('\r\n')) ? '\r\n' : '\n'
  }

  edit(segment: number, start: number, end: number, text: string): void {
    const edits = this.#edits.get(segment)
    if (edits) edits.push({ start, end, text })
    else this.#edits.set(segment, [{ start, end, text }])
  }

  /** A new line at the end of a table that has a header. */
  line(segment: number, line: string): void {
    const lines = this.#lines.get(segment)
    if (lines) lines.push(line)
    else this.#lines.set(segment, [line])
  }

  /** Lines of a new table, or of one more element of an array of tables; more can be pushed. */
  block(path: Path, array: boolean): string[] {
    const key = array ? `${this.#blocks.size} ${JSON.stringify(path)}` : JSON.stringify(path)
    let block = this.#blocks.get(key)
    if (!block) {
      block = { path, array, lines: [] }
      this.#blocks.set(key, block)
    }
    return block.lines
  }

  /** The headers of a table change its name. What is below it is still told under the old path. */
  rename(path: Path, to: string): void {
    this.#renamed.push({ path, to })
  }

  /** The segments with all edits. What an edit leaves without a header of its own goes to the segment before. */
  *result(): Generator<void, readonly Segment[], void> {
    this.#placeLines()
    yield* this.#placeBlocks()
    if (this.#edits.size === 0) return this.segments
    const result: Segment[] = []
    let changed = ''
    for (const [index, segment] of this.segments.entries()) {
      const edits = this.#edits.get(index)
      if (edits) changed += rest(segment, edits, changed || (result.at(-1)?.text ?? ''))
      else {
        if (index > 0) yield* join(result, changed)
        changed = ''
        result.push(segment)
      }
      if (index % 256 === 255) yield
    }
    yield* join(result, changed)
    return result
  }

  #placeLines(): void {
    for (const [segment, lines] of this.#lines) {
      const { entries, contentEnd } = this.segments[segment]!
      const empty = segment === 0 && entries.length === 0
      const at = empty ? this.#rootStart() : contentEnd
      const open = empty && this.#touches({ segment, at })
      this.edit(segment, at, at, [...lines, ...(open ? [''] : []), ''].join(this.newline))
    }
  }

  /** Behind the comment that opens the file, when a blank line sets it apart. */
  #rootStart(): number {
    const { text, bodyStart } = this.segments[0]!
    if (this.segments.length === 1) return text.length
    const opening = /^(?:[ \t]*#[^\n]*\n)+[ \t]*\r?\n/.exec(text.slice(bodyStart))
    return bodyStart + (opening?.[0].length ?? 0)
  }

  /** Text follows without a blank line between. */
  #touches({ segment, at }: Place): boolean {
    const { text } = this.segments[segment]!
    const after = at < text.length ? text.slice(at, at + 2) : this.segments[segment + 1]?.text.slice(0, 2)
    return after !== undefined && !/^\r?\n/.test(after)
  }

  *#placeBlocks(): Generator<void, void, void> {
    let first = this.#edits.size === 0 // something placed before is not in the text yet
    for (const { path, array, lines } of this.#blocks.values()) {
      const place = this.#endOfKin(path)
      const { segment, at } = place
      const header = this.#newPath(path)
        .filter(part => typeof part === 'string')
        .map(keyText)
        .join('.')
      const head = array ? `[[${header}]]` : `[${header}]`
      const apart = (first && segment === 0 && at === 0) || /\n\r?\n$/.test(this.segments[segment]!.text.slice(Math.max(0, at - 3), at))
      const text = [...(apart ? [] : ['']), head, ...lines, ...(this.#touches(place) ? [''] : []), ''].join(this.newline)
      this.edit(segment, at, at, text)
      first = false
      yield
    }
  }

  /** The path with the new names of renamed tables. */
  #newPath(path: Path): Path {
    const result = [...path]
    for (const renamed of this.#renamed) if (startsWith(path, renamed.path)) result[renamed.path.length - 1] = renamed.to
    return result
  }

  /** Behind the last table that shares the longest part of the path; the end of the file when none does. */
  #endOfKin(path: Path): Place {
    for (let length = path.length; length > 0; length--) {
      const kin = find(this.#root, path.slice(0, length))
      if (kin) return { segment: kin.last, at: this.segments[kin.last]!.contentEnd }
    }
    const segment = this.segments.length - 1
    return { segment, at: this.segments[segment]!.text.length }
  }
}

/** The last line gets its line break, so that something can be put behind it. */
function endingInLine(segments: readonly Segment[]): readonly Segment[] {
  const { text } = segments.at(-1)!
  return text === '' || text.endsWith('\n') ? segments : segments.with(-1, new Segment(`${text}\n`, segments.length === 1))
}

/** Puts a text behind the segments. Lines without a header of their own go to the last one. */
function* join(segments: Segment[], text: string): Generator<void, void, void> {
  if (text === '' && segments.length > 0) return
  const whole = segments.length === 0 || isHeader(text, 0) ? text : segments.pop()!.text + text
  segments.push(...(segments.length === 0 ? yield* recut(whole, []) : yield* cut(whole)))
}

/** A segment with its edits. A table that went takes the blank lines behind it along when there is one before it. */
function rest(segment: Segment, edits: readonly Edit[], before: string): string {
  const text = applied(segment.text, edits)
  const gone = segment.names.length > 0 && edits.some(({ start, end, text }) => start === 0 && end > 0 && text === '')
  return gone && (before === '' || /\n[ \t]*\r?\n$/.test(before.slice(-8))) ? text.replace(/^(?:[ \t]*\r?\n)+/, '') : text
}

function applied(text: string, edits: readonly Edit[]): string {
  let result = ''
  let at = 0
  for (const edit of [...edits].sort((a, b) => a.start - b.start)) {
    if (edit.start > at) result += text.slice(at, edit.start)
    result += edit.text
    at = Math.max(at, edit.end)
  }
  return result + text.slice(at)
}
