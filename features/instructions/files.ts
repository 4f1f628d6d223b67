/** Instruction files (AGENTS.md): which there are for a directory, what they say, and whether that is too much. */
import { join } from 'node:path'
import { FileUnusable, homeOfUser, isMissing, lookAtAll, readBounded, stampsAt } from '../../kernel/index.ts'
import { asData } from '../history/index.ts'
import { leadsOffLimits } from '../tools/index.ts'
import { projectDirs } from '../workspaces/index.ts'

const oversizedBytes = 32 * 1024
/** A file above this is not an instruction file; reading it would only cost memory. */
const readBytes = 1024 * 1024

export interface Instructions {
  /** Texts of all files, each after a comment that names its path. */
  readonly text: string
  readonly warning?: string
}

/** Where instruction files are looked for. */
export interface Homes {
  /** The server's home. */
  readonly home: string
  /** The user's. */
  readonly userHome?: string
}

/**
 * Places of instruction files, most general first; of several names in one place the first that is there counts: the server's home, the
 * user's home, then those of the directories from the git root (or the directory itself) down to the directory.
 */
export async function placesFor(cwd: string, { home, userHome = homeOfUser() }: Homes): Promise<readonly (readonly string[])[]> {
  const general = [[join(home, 'AGENTS.md')], [join(userHome, '.agents', 'AGENTS.md'), join(userHome, '.agents', 'agents.md')]]
  return [...general, ...(await placesAbove(cwd))]
}

/** Those of the directories from the git root down to this one. */
export async function placesAbove(dir: string): Promise<string[][]> {
  const dirs = await projectDirs(dir)
  return dirs.toReversed().flatMap(each => [[join(each, '.svc-code', 'AGENTS.md')], [join(each, 'AGENTS.md'), join(each, 'agents.md')]])
}

/** Another text whenever one of the files has come, gone or changed. */
export async function stampOf(places: readonly (readonly string[])[]): Promise<string> {
  const stamps = await stampsAt(places.flat()) // absent or unreadable: what it says is asked for when it is read
  return firstOfEach(
    places,
    stamps.map(stamp => stamp || undefined)
  )
    .map(([path, stamp]) => `${path} ${stamp}`)
    .join('\n')
}

/** The first path of each place for which something was found; `found`: for all of them, in their order. */
function firstOfEach<T>(places: readonly (readonly string[])[], found: readonly (T | undefined)[]): [path: string, found: T][] {
  let at = 0
  return places.flatMap(names => {
    const all = names.map((path): [string, T | undefined] => [path, found[at++]])
    const first = all.find(([, each]) => each !== undefined)
    return first ? [first as [string, T]] : []
  })
}

/** What the files say. Empty ones are skipped, no path is read twice. `home`: the server's, whose files no link of a project shows. */
export async function collect(places: readonly (readonly string[])[], home: string): Promise<Instructions> {
  const seen = new Set<string>()
  const texts: string[] = []
  const problems: string[] = []
  let bytes = 0
  for (const names of places) {
    for (const path of names) {
      if (seen.has(path)) break
      const found = await readText(path, home)
      if (found === undefined) continue
      seen.add(path)
      if (found.problem !== undefined) problems.push(found.problem)
      else if (found.text !== '') {
        texts.push(`<!-- ${path} -->\n${asData(found.text)}`)
        bytes += Buffer.byteLength(found.text)
      }
      break
    }
  }
  if (bytes > oversizedBytes) {
    problems.push(
      `the instruction files hold ${bytes} bytes together, more than the advised ${oversizedBytes}; shorten them to save context`
    )
  }
  return { text: texts.join('\n\n'), ...(problems.length > 0 ? { warning: problems.join('\n') } : {}) }
}

async function readText(path: string, home: string): Promise<{ readonly text: string; readonly problem?: string } | undefined> {
  try {
    if (await leadsOffLimits(path, home)) return { text: '', problem: `${path} is a link to a file that is off limits, and was left out` }
    return { text: (await readBounded(path, readBytes)).toString().trim() }
  } catch (error) {
    if (isMissing(error)) return undefined
    const why = error instanceof FileUnusable ? `is ${error.message} and was left out` : 'could not be read'
    return { text: '', problem: `${path} ${why}` }
  }
}

/** The first file of each place that has something in it. */
export async function filled(places: readonly (readonly string[])[]): Promise<string[]> {
  const found = firstOfEach(places, await lookAtAll(places.flat()))
  return found.flatMap(([path, info]) => (info.isFile() && info.size > 0 ? [path] : []))
}
