/** Where MCP servers are configured: the user's file, files of trusted projects, plugins. Later layers win by name. */
import { isAbsolute, join, resolve } from 'node:path'
import { FileUnusable, invalid, isMissing, readBounded, stampsAt } from '../../kernel/index.ts'
import type { Plugins } from '../plugins/index.ts'
import { projectRoot, type Workspaces } from '../workspaces/index.ts'
import { checkConfig, isServerFile, type ServerConfig } from './config.ts'

/** A server as one layer has it. */
export interface Entry {
  readonly name: string
  readonly config: ServerConfig
  readonly source: 'global' | 'plugin'
  /** Path of the file, or id of the plugin. */
  readonly origin: string
  /** It stands in the user's file. */
  readonly mutable: boolean
  readonly plugin?: { readonly id: string; readonly name: string }
  /** Where its relative paths begin, and where it runs unless it says so; absolute. Undefined: the working directory. */
  readonly root?: string
  /** Variables of its program besides those of its configuration. */
  readonly env?: Readonly<Record<string, string>>
  /** Of a plugin: another text when its files are others. */
  readonly revision?: string
  /** Why it cannot be run, for people: `args expected array`. Its configuration is a stand-in then, and `given` what stands in the file. */
  readonly problem?: string
  readonly given?: unknown
}

interface Layers {
  /** Entries of files first, then those of plugins; within, the most general first. */
  readonly entries: readonly Entry[]
  /** Files that cannot be read, for people. */
  readonly problems: readonly { readonly file: string; readonly message: string }[]
}

export interface LayerPorts {
  /** The server's home. */
  readonly home: string
  readonly workspaces: Workspaces
  readonly plugins: () => Plugins | undefined
}

/** No file of servers is larger. */
export const fileBytes = 4 * 1024 * 1024

export const userFile = (home: string): string => join(home, 'mcp.json')

/** The files that count for a directory; those of an untrusted project are not even looked at. Without a directory: the user's alone. */
async function filesFor(
  cwd: string | undefined,
  { home, workspaces }: LayerPorts
): Promise<readonly { readonly file: string; readonly root?: string }[]> {
  const own = { file: userFile(home) }
  if (cwd === undefined || !(await workspaces.trusted(workspaces.idOf(cwd)))) return [own]
  const root = await projectRoot(cwd)
  return [own, { file: join(root, '.mcp.json'), root }, { file: join(cwd, '.svc-code', 'mcp.json') }]
}

export async function readLayers(cwd: string | undefined, ports: LayerPorts): Promise<Layers> {
  const problems: { file: string; message: string }[] = []
  const entries: Entry[] = []
  for (const { file, root } of await filesFor(cwd, ports)) {
    const read = await readServers(file).catch((error: unknown) => {
      problems.push({ file, message: (error as Error).message })
      return []
    })
    const mutable = file === userFile(ports.home)
    for (const [name, value] of read)
      entries.push({ name, ...understood(value), source: 'global', origin: file, mutable, ...(root === undefined ? {} : { root }) })
  }
  for (const { name, plugin_id, server, config, root, revision } of (await ports.plugins()?.mcpServers()) ?? []) {
    const plugin = { id: plugin_id, name: server }
    const env = { SVC_CODE_HOME: ports.home, SVC_PLUGIN_ROOT: root } // as hooks of plugins have
    entries.push({ name, ...understood(config), source: 'plugin', origin: plugin_id, mutable: false, plugin, root, env, revision })
  }
  return { entries, problems }
}

/** The configuration of a server as files have it. One that cannot be used keeps nobody from the others, and none of its name from before counts. */
function understood(value: unknown): Pick<Entry, 'config' | 'problem' | 'given'> {
  const checked = checkConfig(value, { inferred: true })
  if ('config' in checked) return checked
  const { enabled } = (value ?? {}) as { readonly enabled?: unknown }
  const config = { transport: 'stdio' as const, command: '', ...(enabled === false ? { enabled } : {}) }
  return { config, given: value, problem: checked.problems.map(({ path, message }) => `${path} ${message}`.trim()).join('; ') }
}

/** Why a server of a plugin cannot be run. */
export const pluginServerProblem = (config: Readonly<Record<string, unknown>>): string | undefined => understood(config).problem

export const layerFiles = async (cwd: string, ports: LayerPorts): Promise<readonly string[]> =>
  (await filesFor(cwd, ports)).map(({ file }) => file)

/** Another text whenever one of the files has come, gone or changed, or another file counts. */
export async function layersStamp(files: readonly string[], ports: LayerPorts): Promise<string> {
  const stamps = (await stampsAt(files)).map((stamp, at) => `${files[at]} ${stamp}`)
  const plugins = (await ports.plugins()?.mcpServers()) ?? []
  return [...stamps, ...plugins.map(({ name, root, revision, config }) => `${name} ${root} ${revision} ${JSON.stringify(config)}`)].join(
    '\n'
  )
}

/** One entry per name: files win over plugins, later files over earlier ones. */
export function effective(entries: readonly Entry[]): readonly Entry[] {
  const byName = new Map<string, Entry>()
  for (const entry of entries) {
    if (entry.source === 'plugin' && byName.get(entry.name)?.source === 'global') continue
    byName.set(entry.name, entry)
  }
  return [...byName.values()]
}

/** Directory in which a stdio server runs. */
export function runDir({ config, root }: Entry, cwd: string): string {
  const base = root ?? cwd
  const own = config.transport === 'stdio' ? config.cwd : undefined
  return own === undefined ? base : isAbsolute(own) ? own : resolve(base, own)
}

/** The program of a stdio server: one of a plugin's files is a path below its root. */
export function program({ config, plugin, root }: Entry): string {
  const { command } = config as { readonly command: string }
  return plugin && root !== undefined && command.startsWith('./') ? join(root, command) : command
}

/** Rejects with a sentence for people when the file is there and cannot be understood. */
const readServers = async (file: string): Promise<[string, unknown][]> => serversIn(await serverFileText(file))

/** The text of a file of servers; empty when there is none. Rejects with a sentence for people when it cannot be read. */
export async function serverFileText(file: string): Promise<string> {
  try {
    return (await readBounded(file, fileBytes, 'it')).toString()
  } catch (error) {
    if (isMissing(error)) return ''
    throw new Error(error instanceof FileUnusable ? error.message : `it cannot be read: ${(error as NodeJS.ErrnoException).code}`)
  }
}

export function serversIn(content: string): [string, unknown][] {
  const text = content.trim() // a byte order mark counts as white space
  let value: unknown
  try {
    value = text === '' ? {} : JSON.parse(text)
  } catch {
    throw new Error('it is no JSON') // the reason of the parser may quote a secret
  }
  if (!isServerFile(value)) throw new Error('mcpServers is no table')
  return Object.entries(value.mcpServers ?? {})
}

/** For requests: what cannot be read answers 40001. */
export async function readLayersStrictly(cwd: string | undefined, ports: LayerPorts): Promise<readonly Entry[]> {
  const { entries, problems } = await readLayers(cwd, ports)
  if (problems.length > 0) throw invalid(problems.map(({ file, message }) => ({ path: file, message })))
  return entries
}
