/**
 * Running commands on record: `<home>/server/commands/<server run>.jsonl`, there while commands run. First line: the server's process;
 * then each command's shell. The next start ends what a killed server left running.
 */
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { appendFile, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { jsonOf, type Logger, ownProcess, type ProcessIdentity, processStart, stateOf, ThisThread } from '../../kernel/index.ts'
import { endStrays, findStrays, processIds } from './strays.ts'

const PIPES = '.pipes'
/** A command may run for minutes only: a record of another machine or boot that is older means nothing any more. */
const FOREIGN_MS = 24 * 3600 * 1000

export class CommandRecord {
  readonly #dir: string
  readonly #file: string
  readonly #run: string
  readonly #server: ProcessIdentity
  readonly #log: Logger
  readonly #running = new Set<string>()
  readonly #here = new ThisThread()
  /** What is written by another thread, in its order, because the disk is slow. */
  #behind: Promise<void> | undefined
  #count = 0

  private constructor(dir: string, run: string, server: ProcessIdentity, log: Logger) {
    this.#dir = dir
    this.#file = join(dir, `${run}.jsonl`)
    this.#run = run
    this.#server = server
    this.#log = log
  }

  /** `run`: an id that no other server has. Ends the commands of servers of this home that are gone. */
  static async open(home: string, run: string, log: Logger): Promise<CommandRecord> {
    const dir = join(home, 'server', 'commands')
    await reap(dir, log)
    return new CommandRecord(dir, run, await ownProcess(), log)
  }

  /** Where pipes of this server have names while they are made. */
  get pipes(): string {
    return join(this.#dir, `${this.#run}${PIPES}`)
  }

  /** The mark for a command that is about to start; from here on the next server would look for it. */
  begin(): string {
    if (this.#running.size === 0) {
      const line = `${JSON.stringify(this.#server)}\n`
      this.#write(
        () => {
          mkdirSync(this.#dir, { recursive: true, mode: 0o700 })
          writeFileSync(this.#file, line, { mode: 0o600 })
        },
        async () => {
          await mkdir(this.#dir, { recursive: true, mode: 0o700 })
          await writeFile(this.#file, line, { mode: 0o600 })
        }
      )
    }
    const mark = `${this.#run}.${++this.#count}`
    this.#running.add(mark)
    return mark
  }

  /** The shell of a command that has just been started. */
  async started(mark: string, pid: number): Promise<void> {
    const start = await processStart(pid)
    const line = `${JSON.stringify({ pid, start })}\n`
    if (this.#running.has(mark))
      this.#write(
        () => appendFileSync(this.#file, line),
        () => appendFile(this.#file, line)
      )
  }

  /** Nothing of the command is left. */
  ended(mark: string): void {
    if (this.#running.delete(mark) && this.#running.size === 0)
      this.#write(
        () => rmSync(this.#file, { force: true }),
        () => rm(this.#file, { force: true })
      )
  }

  /** At once, before the command goes on; but no slow disk holds up everybody for it. */
  #write(now: () => void, later: () => Promise<void>): void {
    const failed = (err: unknown) =>
      this.#log.warn({ err }, 'running commands cannot be recorded: if this server is killed, they will go on')
    if (this.#behind || !this.#here.isQuick) {
      const behind: Promise<void> = Promise.resolve(this.#behind)
        .then(later)
        .catch(failed)
        .then(() => {
          if (this.#behind === behind) this.#behind = undefined
        })
      this.#behind = behind
      return
    }
    try {
      this.#here.run(now)
    } catch (err) {
      failed(err)
    }
  }
}

async function reap(dir: string, log: Logger): Promise<void> {
  const names = await readdir(dir).catch(() => []) // not there: nothing was left
  for (const name of names.filter(each => each.endsWith('.jsonl'))) {
    const file = join(dir, name)
    const [server, ...shells] = identities(await readFile(file, 'utf8').catch(() => '')) // its server has just removed it
    const state = server && (await stateOf(server))
    if (state === 'alive' || (state !== 'gone' && (await isRecent(file)))) continue
    if (state === 'gone') {
      const mark = name.slice(0, -'.jsonl'.length)
      const sessions = await ownSessions(shells, server?.where)
      const pids = await endStrays(() => findStrays(processIds(), { mark, sessions }))
      if (pids.length > 0) log.warn({ pids }, 'commands of a server that was killed were still running; they were ended')
    }
    await rm(file, { force: true })
  }
  for (const made of names.filter(each => each.endsWith(PIPES)).map(each => join(dir, each)))
    if (!(await isRecent(made))) await rm(made, { recursive: true, force: true }) // a server was killed over it
}

/** Sessions that are still those of the commands: a process id may belong to somebody else by now. */
async function ownSessions(shells: readonly ProcessIdentity[], where: string | undefined): Promise<number[]> {
  const all = new Set(processIds())
  const found: number[] = []
  for (const { pid, start } of shells) {
    if (start === undefined) continue
    const state = await stateOf({ pid, start, ...(where === undefined ? {} : { where }) })
    if (state === 'alive' || !all.has(pid)) found.push(pid)
  }
  return found
}

async function isRecent(file: string): Promise<boolean> {
  const found = await stat(file).catch(() => undefined) // gone: somebody else removed it
  return found !== undefined && Date.now() - found.mtimeMs < FOREIGN_MS
}

/** One a line; a line that a crash cut short counts for nothing. */
function identities(text: string): ProcessIdentity[] {
  return text.split('\n').flatMap(line => {
    const value = jsonOf(line) as Partial<ProcessIdentity> | null | undefined
    return typeof value?.pid === 'number' ? [value as ProcessIdentity] : []
  })
}
