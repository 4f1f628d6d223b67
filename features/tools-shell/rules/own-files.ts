/** Whether paths lead to the server's own files: by their names, as file patterns, by links. */
import { opendir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { lookAt, realAt, yieldToLoop } from '../../../kernel/index.ts'
import { belongsToHome, compilePathGlob, isInside, linkedSecrets, type Surroundings, secretLinks, withoutLinks } from '../../tools/index.ts'
import type { Recursion } from './recursion.ts'
import { UNKNOWN } from './texts.ts'

/** What is looked at for one line: directories and names in them, links and names followed, and how long all of it may take, ms. */
const DIRS = 4000
const ENTRIES = 100_000
const LOOKS = 20_000
const LOOK_MS = 1000

/** Above what may be looked at: it may lead there. */
class TooMuch extends Error {}

export class OwnFiles {
  readonly #around: Surroundings
  /** The same as it was given, and with its links resolved. */
  readonly #views: readonly Surroundings[]
  /** Patterns stand for names with a dot in front, too. */
  readonly #dots: boolean
  readonly #reals = new Map<string, string | undefined>()
  readonly #listed = new Map<string, readonly Entry[]>()
  /** Files of the home that have names elsewhere. */
  #secrets: ReturnType<typeof linkedSecrets> | undefined
  #dirs = DIRS
  #entries = ENTRIES
  #looks = LOOKS
  readonly #end = performance.now() + LOOK_MS

  static async of(given: Surroundings, dots: boolean): Promise<OwnFiles> {
    const around = {
      home: await withoutLinks(given.home),
      cwd: await withoutLinks(given.cwd),
      agent_dir: await withoutLinks(given.agent_dir)
    }
    return new OwnFiles(given, around, dots)
  }

  private constructor(given: Surroundings, around: Surroundings, dots: boolean) {
    const isLinked = around.home !== given.home || around.cwd !== given.cwd || around.agent_dir !== given.agent_dir
    this.#around = around
    this.#views = isLinked ? [around, given] : [around]
    this.#dots = dots
  }

  /** Links resolved. */
  get home(): string {
    return this.#around.home
  }

  /** The file of the home that a path (absolute, without `..`) names; with `below`, the home for directories above it. */
  named(path: string, below = false): string | undefined {
    for (const view of this.#views) {
      const fitting = atPattern(path, view.home, this.#dots)
      if (belongsToHome(fitting, view)) return join(this.home, relative(view.home, fitting))
      if (below && isInside(view.home.toLowerCase(), fitting.toLowerCase())) return this.home
    }
    return undefined
  }

  /** The same for where links lead from it: `path` as it is written, `..` and all. `globs`: file patterns in it are some. */
  async led(path: string, globs: boolean, recursion: Recursion | undefined): Promise<string | undefined> {
    try {
      if (performance.now() > this.#end) throw new TooMuch()
      const ends = globs && /[*?[]/.test(path) ? await this.#matches(path) : [await this.#real(path)]
      for (const end of ends) {
        const others = yieldToLoop()
        if (others) await others
        if (end === undefined) continue
        const own = this.named(end, recursion !== undefined) ?? (recursion?.links ? await this.#below(end) : undefined)
        if (own) return own
      }
      this.#secrets ??= linkedSecrets(this.home)
      const links = await secretLinks(
        ends.filter(end => end !== undefined),
        this.home,
        this.#secrets
      )
      return links.size > 0 ? this.home : undefined
    } catch (error) {
      if (error instanceof TooMuch) return this.home
      throw error
    }
  }

  /** What the path leads to. */
  async #real(path: string): Promise<string | undefined> {
    if (this.#reals.has(path)) return this.#reals.get(path)
    if (--this.#looks < 0) throw new TooMuch()
    const real = await realAt(path)
    this.#reals.set(path, real)
    return real
  }

  /** What a pattern stands for, links resolved. */
  async #matches(pattern: string): Promise<readonly string[]> {
    let found: readonly string[] = ['/']
    for (const part of pattern.split('/').filter(each => each !== '')) {
      const next = new Set<string | undefined>()
      const fits = /[*?[]/.test(part) ? compilePathGlob(part) : undefined
      for (const dir of found) {
        if (!fits) next.add(await this.#real(`${dir === '/' ? '' : dir}/${part}`))
        else
          for (const { name, isLink } of await this.#namesIn(dir)) {
            const others = yieldToLoop()
            if (others) await others
            const isHidden = name.startsWith('.') && !part.startsWith('.') && !this.#dots
            if (!isHidden && fits(name)) next.add(isLink ? await this.#real(join(dir, name)) : join(dir, name))
          }
      }
      found = [...next].filter(each => each !== undefined)
    }
    return found
  }

  /** What a link in the directory or below leads to of ours. */
  async #below(root: string): Promise<string | undefined> {
    const dirs = new Set([root])
    for (const dir of dirs)
      for (const { name, isLink, isDir } of await this.#namesIn(dir)) {
        const others = yieldToLoop()
        if (others) await others
        if (isDir) dirs.add(join(dir, name))
        const real = isLink ? await this.#real(join(dir, name)) : undefined
        if (real === undefined) continue
        const own = this.named(real, true)
        if (own !== undefined) return own
        if ((await lookAt(real))?.isDirectory()) dirs.add(real)
      }
    return undefined
  }

  async #namesIn(dir: string): Promise<readonly Entry[]> {
    const known = this.#listed.get(dir)
    if (known) return known
    if (--this.#dirs < 0 || performance.now() > this.#end) throw new TooMuch()
    const found: Entry[] = []
    const opened = await opendir(dir, { bufferSize: 256 }).catch(() => undefined) // no directory, or no permission
    for await (const entry of opened ?? []) {
      if (--this.#entries < 0) throw new TooMuch()
      found.push({ name: entry.name, isLink: entry.isSymbolicLink(), isDir: entry.isDirectory() })
      const others = yieldToLoop()
      if (others) await others
    }
    this.#listed.set(dir, found)
    return found
  }
}

interface Entry {
  readonly name: string
  readonly isLink: boolean
  readonly isDir: boolean
}

/**
 * A path whose file patterns may stand for a directory, what is below it, or one above it (absolute): that one, where they fit. Names with a dot
 * need one in the pattern, unless `dots`.
 */
export function atPattern(path: string, dir: string, dots = false): string {
  const parts = path.split('/')
  const names = dir.split('/')
  const shared = Math.min(parts.length, names.length)
  for (let at = 0; at < shared; at++) if (!fits(parts[at]!, names[at]!, dots)) return path
  return [...names.slice(0, shared), ...parts.slice(names.length)].join('/')
}

function fits(part: string, name: string, dots: boolean): boolean {
  if (part === name) return true
  if (!part.includes(UNKNOWN) && !/[*?[]/.test(part)) return part.toLowerCase() === name.toLowerCase()
  if (!dots && name.startsWith('.') !== part.startsWith('.')) return false
  return compilePathGlob(part.replaceAll(UNKNOWN, '*').toLowerCase())(name.toLowerCase())
}
