/** Looks for pipes and endless files in the place of ignore files, again and again while a program runs. In its own thread: trees are large. */
import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { canHold, heldAt, O_PATH } from './held.ts'
import { runBehind } from './priority.ts'

export interface SpecialsTask {
  /** Directory, links resolved. */
  readonly root: string
  /** Directories above it whose files count, too. */
  readonly above: readonly string[]
  readonly reader: 'ripgrep' | 'git'
}

/** Without an end: a device, or larger than any ignore file is. */
export type SpecialKind = 'pipe' | 'endless'

/** Larger ones count as endless. */
const LARGEST = 64 * 1024 * 1024
/** A file that says where a repository is has no more. */
const LINK_BYTES = 4096
const CONFIG_BYTES = 256 * 1024
/** Who waits at a pipe is helped so often, and the next look comes so much later; each pause is twice the one before, ms. */
const [HELP_MS, AGAIN_MS] = [2, 1000]

/** A pipe may take the place of a file after the look. */
const atOnce = { encoding: 'utf8', flag: (constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)) as never } as const

/** What is read in every directory, and in a repository; git reads everything in its own. */
const names = {
  ripgrep: new Set(['.gitignore', '.ignore', '.rgignore']),
  git: new Set(['.gitignore', '.gitattributes', '.gitmodules'])
}

class Specials {
  readonly #task: SpecialsTask
  readonly #found: (kind: SpecialKind) => void
  #pipes = new Set<string>()

  constructor(task: SpecialsTask, found: (kind: SpecialKind) => void) {
    this.#task = task
    this.#found = found
  }

  look(): void {
    this.#pipes = new Set()
    const { root, above, reader } = this.#task
    for (const dir of above) this.#directory(dir)
    const repositories: string[] = []
    for (let level = [root]; level.length > 0; ) {
      const next: string[] = []
      for (const dir of level) {
        for (const entry of this.#directory(dir)) {
          if (!entry.isDirectory()) continue
          if (entry.name === '.git') repositories.push(join(dir, entry.name))
          else next.push(join(dir, entry.name))
        }
        this.help()
      }
      level = next
    }
    if (reader === 'git') for (const at of repositories) this.#whole(at)
  }

  /** Ends the wait of who has opened one of the pipes to read: it is opened to write, and closed. */
  help(): void {
    if (this.#task.reader === 'git') for (const pipe of this.#pipes) openForReader(pipe)
  }

  get waits(): boolean {
    return this.#pipes.size > 0
  }

  #directory(dir: string) {
    const { reader } = this.#task
    const entries = entriesOf(dir)
    for (const { name } of entries) {
      if (names[reader].has(name)) this.#judge(join(dir, name))
      if (name === '.git') this.#repository(join(dir, name))
    }
    return entries
  }

  #repository(git: string): void {
    if (this.#task.reader === 'ripgrep') {
      this.#judge(join(git, 'info', 'exclude'))
      return
    }
    const place = repositoryAt(git)
    if (place !== git) this.#whole(place)
    for (const named of namedBy(join(place, 'config'))) for (const from of [place, dirname(git)]) this.#judge(resolve(from, named))
  }

  /** Everything below a directory. */
  #whole(top: string): void {
    const dirs = [top]
    for (let dir = dirs.pop(); dir !== undefined; dir = dirs.pop()) {
      for (const entry of entriesOf(dir)) {
        if (entry.isDirectory()) dirs.push(join(dir, entry.name))
        else if (!entry.isFile()) this.#judge(join(dir, entry.name))
      }
      this.help()
    }
  }

  #judge(file: string): void {
    const kind = kindOf(file, this.#task.reader)
    if (kind === undefined) return
    if (kind === 'pipe') this.#pipes.add(file)
    if (kind === 'endless' || this.#task.reader === 'ripgrep') this.#found(kind)
  }
}

/** What a file is to who opens and reads it. Nothing is there, it is refused, or it ends: undefined. */
function kindOf(file: string, reader: SpecialsTask['reader']): SpecialKind | undefined {
  try {
    const stats = statSync(file)
    if (stats.isFIFO()) return 'pipe'
    if (stats.isFile() && stats.size > LARGEST) return 'endless'
    if (reader === 'git') return undefined // it reads as much as the size says
    if (stats.isBlockDevice() || (stats.isCharacterDevice() && stats.rdev !== statSync('/dev/null').rdev)) return 'endless'
  } catch {
    return undefined
  }
  // Each process finds other files there, as long as they last.
  return reader === 'ripgrep' && linkOf(file)?.startsWith('/proc/') ? 'endless' : undefined
}

function linkOf(file: string): string | undefined {
  try {
    return readlinkSync(file)
  } catch {
    return undefined // no link
  }
}

function entriesOf(dir: string) {
  try {
    return readdirSync(dir, { withFileTypes: true })
  } catch {
    return [] // gone, or nobody may read it
  }
}

/** Where the repository is of which `.git` is, or says where it is. */
function repositoryAt(git: string): string {
  try {
    const stats = statSync(git)
    if (!stats.isFile() || stats.size > LINK_BYTES) return git
    const place = /^gitdir: (.+)$/m.exec(readFileSync(git, atOnce))?.[1]?.trim()
    return place === undefined ? git : isAbsolute(place) ? place : join(dirname(git), place)
  } catch {
    return git
  }
}

/** Files that the configuration of a repository has git read. */
function namedBy(config: string): string[] {
  try {
    const stats = statSync(config)
    if (!stats.isFile() || stats.size > CONFIG_BYTES) return []
    const named = readFileSync(config, atOnce).matchAll(/(?:^|\])\s*(?:excludesfile|attributesfile|path)\s*=\s*"?([^"\n#;]+?)"?\s*$/gim)
    return Array.from(named, ([, path = '']) => path.replace(/^~(?=\/)/, homedir()))
  } catch {
    return [] // gone, or nobody may read it
  }
}

function openForReader(pipe: string): void {
  let held: number | undefined
  try {
    held = canHold ? openSync(pipe, O_PATH) : undefined
    if (held !== undefined && !fstatSync(held).isFIFO()) return
    closeSync(openSync(held === undefined ? pipe : heldAt(held), constants.O_WRONLY | constants.O_NONBLOCK))
  } catch {
    // nobody waits there
  } finally {
    if (held !== undefined) closeSync(held)
  }
}

/** This thread alone; the server keeps its priority. */
function stepBack(): void {
  try {
    runBehind({ pid: Number(readlinkSync('/proc/thread-self').split('/').at(-1)) })
  } catch {
    // elsewhere threads have no priority of their own
  }
}

const pause = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

if (parentPort) {
  const port = parentPort
  stepBack()
  const specials = new Specials(workerData as SpecialsTask, kind => port.postMessage(kind))
  for (let again = AGAIN_MS; ; again *= 2) {
    specials.look()
    for (let waited = 0; waited < again; waited += HELP_MS) {
      if (!specials.waits) {
        pause(again)
        break
      }
      specials.help()
      pause(HELP_MS)
    }
  }
}
