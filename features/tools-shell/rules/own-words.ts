/** Which words of a line lead to files of the server itself, wherever the line is when it uses them. */
import { dirname, isAbsolute, join } from 'node:path'
import type { Command, SyntaxNode, Word } from 'unbash'
import { yieldToLoop } from '../../../kernel/index.ts'
import { absolutePath, type FileAccess, type Surroundings } from '../../tools/index.ts'
import type { Call } from './call.ts'
import { Directories, goingIn, withoutDetours } from './directories.ts'
import { OwnFiles } from './own-files.ts'
import { type Recursion, recursionOf, takesNames } from './recursion.ts'
import { Texts, UNKNOWN } from './texts.ts'
import type { Found } from './tree.ts'
import type { Values } from './values.ts'

/** Paths that a word may hold: most have one, a program given on the line has many. */
const PIECES = 500
/** No file has a longer path. */
const PATH_CHARS = 4096

/** A word, and where the line may be when it is used. */
interface Place {
  readonly word: Word
  readonly dirs: Iterable<string>
}

/** A command that touches what is below its words. */
interface Reaching {
  readonly command: Command
  readonly recursion: Recursion
  readonly dirs: Iterable<string>
}

/** What the words of a line do, before anybody looks where they lead. */
class Survey {
  readonly directories: Directories
  readonly places: Place[] = []
  readonly reaching: Reaching[] = []
  /** Words that say where the line goes. */
  readonly going = new Set<SyntaxNode>()
  /** What is touched below a word; undefined: nothing, whatever else the line does. */
  readonly reached = new Map<SyntaxNode, Recursion | undefined>()
  /** Other directories in which a word may begin. */
  readonly elsewhere = new Map<SyntaxNode, readonly string[]>()
  /** What a command touches whose words stand somewhere else in the line. */
  loose: Recursion | undefined
  /** File patterns stand for hidden names, too. */
  dots = false
  readonly #taken: boolean

  constructor(all: readonly Found[], directories: Directories) {
    this.directories = directories
    this.#taken = all.some(({ node, call }) => takesNames(node.type, call?.program.name))
  }

  /** In the order of the text. */
  async meet(found: Found): Promise<void> {
    await this.directories.meet(found)
    const { node, call, fed } = found
    const { now: dirs, texts } = this.directories
    if (node.type === 'Word') {
      this.places.push({ word: node, dirs })
      this.dots ||= /dotglob|GLOBIGNORE/.test(node.value)
    }
    if (node.type === 'Assignment') this.dots ||= node.name === 'GLOBIGNORE'
    if (node.type !== 'Command' || !call) return
    const { args } = node
    if (goingIn(call))
      for (const each of args) {
        this.going.add(each)
        this.reached.set(each, undefined)
      }
    const { chain } = call
    const others = chain.flatMap(each => otherDirs(each.call, texts))
    if (others.length > 0) for (const each of args) this.elsewhere.set(each, others)
    for (const { call: own } of chain) {
      const recursion = recursionOf(own, fed, this.#taken)
      if (!recursion) continue
      this.reaching.push({ command: node, recursion, dirs })
      for (const [at, word] of own.words.entries())
        if (word && at > 0) this.reached.set(word, at === recursion.target ? undefined : recursion)
      const isCarried = own !== call && /^(?:parallel|xargs)$/.test(call.program.name)
      if (isCarried || own.words.some(word => word && /\$\{?[\d@*]/.test(word.text))) this.loose = recursion
    }
  }
}

/** `line`: its tree, and `texts` those of texts on it that shells read, in the order of the text. `moves`: it goes to another directory. */
export async function ownWords(
  line: readonly Found[],
  texts: readonly Found[],
  cwd: string,
  given: Surroundings,
  values: Values
): Promise<{ readonly own: ReadonlyMap<SyntaxNode, FileAccess>; readonly moves: boolean }> {
  const { home } = given
  const directories = new Directories(cwd, home, values)
  const all = [...line, ...texts]
  const survey = new Survey(all, directories)
  for (const [at, each] of all.entries()) {
    const others = yieldToLoop()
    if (others) await others
    if (at >= line.length && each.node.type === 'Script') directories.scatter()
    await survey.meet(each)
  }
  const { places, reaching, going, reached, elsewhere, loose, dots } = survey
  const files = await OwnFiles.of(given, dots)
  const words = new Texts(values, directories.all)
  const own = new Map<SyntaxNode, FileAccess>()
  const add = (node: SyntaxNode, path: string | undefined) => {
    if (path !== undefined) own.set(node, { kind: 'read', path })
  }
  /** The same word in the same place leads to the same. */
  const known = new Map<string, string | undefined>()
  for (const { word, dirs } of places) {
    const others = yieldToLoop()
    if (others) await others
    const recursion = reached.has(word) ? reached.get(word) : loose
    const now = [...dirs, ...(elsewhere.get(word) ?? []).flatMap(dir => Array.from(dirs, from => absolutePath(dir, from)))]
    const key = [word.text, recursion?.links, ...now].join('\0')
    if (!known.has(key)) {
      const isGlob = word.parts?.some(part => part.type !== 'SingleQuoted' && part.type !== 'DoubleQuoted') ?? false
      const named = { texts: words.of(word), bases: new Set([...now, ...directories.all]), now: new Set(now), isGlob, recursion }
      known.set(key, await leadTo(named, files, home))
    }
    add(word, directories.tooMany && going.has(word) ? files.home : known.get(key)) // it may lead anywhere
  }
  for (const { command, recursion, dirs } of reaching) {
    if (!recursion.here) continue
    for (const dir of dirs) {
      const path = files.named(dir, true) ?? (await files.led(dir, false, recursion))
      for (const each of command.args) add(each, path)
    }
  }
  return { own, moves: directories.moves }
}

interface Named {
  /** What it may come out as; undefined: anything. */
  readonly texts: readonly string[] | undefined
  /** Where its paths may begin. */
  readonly bases: ReadonlySet<string>
  /** Those of them where the line may be when it uses the word. */
  readonly now: ReadonlySet<string>
  /** File patterns in it are some. */
  readonly isGlob: boolean
  readonly recursion: Recursion | undefined
}

/** The server's own file that a word names, or leads to. */
async function leadTo({ texts, bases, now, isGlob, recursion }: Named, files: OwnFiles, home: string): Promise<string | undefined> {
  if (!texts) return files.home
  const pieces = new Set<string>()
  for (const text of texts) {
    const others = yieldToLoop()
    if (others) await others
    for (const piece of piecesIn(text)) if (piece.length <= PATH_CHARS) pieces.add(piece)
  }
  const raws = new Map<string, { readonly reach: Recursion | undefined; readonly globs: boolean }>()
  for (const each of pieces) {
    const others = yieldToLoop()
    if (others) await others
    for (const base of bases)
      for (const piece of pathsAt(each, base, home)) {
        if (piece.startsWith(`${UNKNOWN}/`)) {
          const rest = piece.slice(1).replace(/^(?:\/+\.{0,2}(?=\/))+/, '') // wherever it begins, it may be above the home
          const own = ancestors(home)
            .map(dir => files.named(join(dir, rest)))
            .find(path => path !== undefined)
          if (own) return own
          continue
        }
        const isFree = isAbsolute(piece) || piece.startsWith('~')
        const reach = isFree || now.has(base) ? recursion : undefined
        const path = absolutePath(piece, base)
        const own = files.named(path, reach !== undefined)
        if (own) return own
        const raw = isFree ? path : `${base}/${piece}`
        raws.set(raw.replaceAll(UNKNOWN, '*'), { reach, globs: isGlob || (!isFree && /[*?[]/.test(base)) })
      }
  }
  for (const [raw, { reach, globs }] of raws) {
    const own = await files.led(raw, globs, reach)
    if (own) return own
  }
  return undefined
}

/** Directories that a command goes to by itself: `tar -C`, `make -C`, `--directory`. */
function otherDirs({ program, values, words }: Call, texts: Texts): string[] {
  const glued = /^(?:-C|--(?:chdir|cwd|directory)=)(?=.)/
  const isCluster = /tar$/.test(program.name) && /^\w*C\w*$/.test(values[1] ?? '')
  return words.flatMap((word, at) => {
    const isMarked = /^(?:-\w*C|--(?:chdir|cwd|directory))$/.test(values[at - 1] ?? '') || (at > 1 && isCluster)
    if (!word || !(isMarked || glued.test(values[at]!))) return []
    return (texts.of(word) ?? []).map(text => text.replace(glued, ''))
  })
}

/** Texts in a word that may be paths: behind `=`, `:`, `,` and `@`, glued to a flag, and in the text of a program. */
function piecesIn(value: string): Iterable<string> {
  const texts = new Set([value, value.slice(value.indexOf('=') + 1), ...value.split(/[=:,@]/, PIECES)])
  if (/[\s'"`;|&<>()]/.test(value))
    for (const text of value.split(/[\s'"`;|&<>()=:,@]+/, PIECES)) {
      texts.add(text.replace(/^\$(?:\w+|\{\w+\})(?=\/)/, UNKNOWN))
      if (text.startsWith('/')) texts.add(UNKNOWN + text) // the program may put something before it
    }
  const flag = /^-[^-]*?([/.~].*)/s.exec(value)?.[1]
  if (/^-[^-]/.test(value)) for (const text of [flag, value.slice(2)]) if (text) texts.add(text)
  return texts
}

/** The paths that one of them may be for a line in this directory. */
function pathsAt(piece: string, base: string, home: string): string[] {
  const moved = withoutDetours(piece, base)
  const named = /^~[^/]+(\/.*)?/s.exec(moved) // of some user, or the directory before: any that the home lies below
  return named ? [moved, ...ancestors(home).map(dir => join(dir, named[1] ?? ''))] : [moved]
}

function ancestors(path: string): string[] {
  const above = dirname(path)
  return above === path ? [] : [above, ...ancestors(above)]
}
