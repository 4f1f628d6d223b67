/** Registry of running servers of one home: `<home>/server/instances/<ULID>.json` (contract 1, What the service does, fact 2). */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { identityAt, jsonOf, ownProcess, readIfThere, replaceFile, stateOf } from '../../kernel/index.ts'

export interface Instance {
  readonly server_id: string
  readonly pid: number
  readonly host: string
  readonly port: number
  /** Epoch ms. */
  readonly started_at: number
  /** Epoch ms; rewritten every 15 s. */
  readonly heartbeat_at: number
  readonly host_version?: string
  /** Tells a reused process id apart, where the system knows. */
  readonly process_start?: string | undefined
  /** Machine and container that the process id belongs to. */
  readonly process_where?: string | undefined
  /** Which directory the entry was written to: one in a copy of the home speaks of a server of another home. */
  readonly directory?: string | undefined
}

export interface RegisterOptions extends Omit<Instance, 'pid' | 'heartbeat_at' | 'process_start' | 'process_where' | 'directory'> {
  /** Heartbeat period in ms; default 15 s. */
  readonly heartbeatMs?: number
}

/** Four beats missed: a server that nobody here can see has ended. */
const silentMs = 60_000

/** Registers this process and keeps the heartbeat; the returned function removes the entry. Entries of dead processes are swept. */
export async function registerInstance(home: string, options: RegisterOptions): Promise<() => Promise<void>> {
  const { heartbeatMs = 15_000, ...fields } = options
  const dir = instancesDir(home)
  await mkdir(dir, { recursive: true, mode: 0o700 })
  await listInstances(home)
  const path = join(dir, `${fields.server_id}.json`)
  let writing: Promise<void> = Promise.resolve()
  let closed = false
  const { start: process_start, where: process_where } = await ownProcess()
  const directory = await identityAt(dir)
  const write = async () => {
    if (closed) return
    const entry: Instance = { ...fields, pid: process.pid, heartbeat_at: Date.now(), process_start, process_where, directory }
    await replaceFile(path, `${JSON.stringify(entry)}\n`, { sync: 'write' })
  }
  await write()
  const timer = setInterval(() => {
    writing = writing.then(write).catch(() => undefined) // a full disk must not end the server; the next beat tries again
  }, heartbeatMs)
  timer.unref()
  return async () => {
    clearInterval(timer)
    closed = true
    await writing
    await rm(path, { force: true })
  }
}

/** Running servers of a home, oldest first. Removes what dead processes left behind. */
export async function listInstances(home: string): Promise<Instance[]> {
  const dir = instancesDir(home)
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const found = await Promise.all(names.map(name => readEntry(dir, name)))
  const here = found.length > 0 ? await identityAt(dir) : ''
  const ours = found.filter(entry => entry !== undefined && (entry.directory ?? here) === here) as Instance[]
  return ours.sort((a, b) => a.started_at - b.started_at || (a.server_id < b.server_id ? -1 : 1))
}

function instancesDir(home: string): string {
  return join(home, 'server', 'instances')
}

async function readEntry(dir: string, name: string): Promise<Instance | undefined> {
  const path = join(dir, name)
  if (!name.endsWith('.json')) return undefined
  const entry = parse((await readIfThere(path).catch(() => undefined)) ?? '') // removed by its owner between the listing and now
  if (!entry) return undefined
  if (await isRunning(entry)) return entry
  await rm(path, { force: true })
  return undefined
}

/** Of a server in another container only its heartbeat can be seen. */
async function isRunning({ pid, process_start: start, process_where: where, heartbeat_at }: Instance): Promise<boolean> {
  const state = await stateOf({ pid, ...(start !== undefined && { start }), ...(where !== undefined && { where }) })
  return state === 'elsewhere' ? Date.now() - heartbeat_at < silentMs : state === 'alive'
}

function parse(text: string): Instance | undefined {
  const value = jsonOf(text) as Partial<Instance> | null | undefined
  const complete =
    typeof value?.server_id === 'string' &&
    typeof value.pid === 'number' &&
    typeof value.port === 'number' &&
    typeof value.host === 'string' &&
    typeof value.started_at === 'number'
  return complete ? (value as Instance) : undefined // foreign or damaged file: not an instance
}
