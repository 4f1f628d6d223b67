/** A TOML document as its segments. Read anew or changed, it takes over from its predecessor whatever is the same. */
import { stringify } from 'smol-toml'
import { shareTable } from './sharing.ts'
import { same, settled, type Table } from './tables.ts'
import { readToml, TomlProblem } from './toml.ts'
import { recut } from './toml-cut.ts'
import { editSegments } from './toml-edit.ts'
import type { Segment } from './toml-segment.ts'
import { type Node, plant } from './toml-tree.ts'

export interface TomlDocument {
  readonly text: string
  readonly segments: readonly Segment[]
  readonly root: Node
  /** Content, frozen. Parts that did not change are the same objects as in the document before. */
  readonly table: Table
}

/** Reads a text; only what differs from `before` is parsed. Yields often. Throws TomlProblem. */
export function* openToml(text: string, before?: TomlDocument): Generator<void, TomlDocument, void> {
  return yield* assemble(text, yield* recut(text, before?.segments ?? []), before?.table)
}

/**
 * The document with `next` as its content: what did not change keeps its comments, order and layout. An edit that does not read back as
 * `next` is given up and the whole document is written anew. Yields often. Throws when `next` has something TOML cannot say.
 */
export function* editToml(before: TomlDocument, next: Table): Generator<void, TomlDocument, void> {
  const meant = Object.isFrozen(next) ? next : yield* shareTable(before.table, next)
  const segments = yield* editSegments(before.segments, before.root, before.table, meant)
  try {
    const edited = yield* assemble(segments.map(({ text }) => text).join(''), segments, meant)
    if (edited.table === meant || same(edited.table, meant)) return edited
  } catch (error) {
    if (!(error instanceof TomlProblem)) throw error
  }
  const text = stringify(meant)
  return yield* assemble(text, yield* recut(text, []), meant)
}

/** `like`: content to share parts with. */
function* assemble(text: string, segments: readonly Segment[], like: Table | undefined): Generator<void, TomlDocument, void> {
  const { root, table } = yield* plant(segments)
  const content = table ?? settled(readToml(text))
  return { text, segments, root, table: like ? yield* shareTable(like, content) : content }
}
