/** Questions about paths that tools and permissions ask: what lies where, and what is off limits by its name or by its place. */
import { readlink, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { homeOfUser, isMissing, realAt } from '../../kernel/index.ts'

/** A path as a model or a shell line gives it, absolute: `~` stands for the home of the user, a relative one lies below `cwd`. */
export function absolutePath(given: string, cwd: string): string {
  return isBelowUser(given) ? join(homeOfUser(), given.slice(1)) : resolve(cwd, given)
}

/** `~`, or something below it. */
export function isBelowUser(given: string): boolean {
  return given === '~' || given.startsWith('~/')
}

/** True for the directory itself and everything below it. */
export function isInside(path: string, dir: string): boolean {
  const below = relative(dir, path)
  return below === '' || (!/^\.\.(?:[/\\]|$)/.test(below) && !isAbsolute(below))
}

/**
 * Where an absolute path leads: links resolved as far as something is there. A link to nothing counts as what it names, because whoever writes
 * through it makes that. Rejects with Node's errno codes, not for what is missing.
 */
export async function leadsTo(path: string): Promise<string> {
  const missing = (error: unknown) => {
    if (!isMissing(error)) throw error
    return undefined
  }
  const real = (await realAt(path)) ?? (await realpath(path).catch(missing)) // why it has none, the slower call says
  const parent = dirname(path)
  if (real !== undefined || parent === path) return real ?? path
  const target = await readlink(path).catch(() => undefined) // no link: what is above it counts
  return target === undefined ? join(await leadsTo(parent), basename(path)) : await leadsTo(resolve(await leadsTo(parent), target))
}

const plain = new Set(['.env', 'id_rsa', 'id_ed25519', 'id_ecdsa', 'credentials', 'server.token'])
const suffixed = /^(?:id_rsa|id_ed25519|id_ecdsa|credentials)(?:[-_].*|\.(?:bak|backup|copy|disabled|key|old|orig|pem|save|tmp))$/
const publicKey = /^id_(?:rsa|ed25519|ecdsa)(?:[-_].*)?\.pub$/
const samples = new Set(['.env.example', '.env.sample', '.env.template'])
const folders = /(?:^|\/)\.(?:(?:aws|gcp|svc-code)\/credentials|svc-code\/config\.toml)(?:\/|$)/

/** Whether a path names a sensitive file. Case does not matter; the path need not exist. */
export function isSensitive(path: string): boolean {
  const normal = path.replaceAll('\\', '/').toLowerCase().replace(/\/+$/, '')
  const base = normal.slice(normal.lastIndexOf('/') + 1)
  if (samples.has(base) || publicKey.test(base)) return false
  return plain.has(base) || base.startsWith('.env.') || suffixed.test(base) || folders.test(normal)
}

/** Where a call is made from; absolute paths, links resolved. */
export interface Surroundings {
  /** The server's home. */
  readonly home: string
  /** Working directory of the session. */
  readonly cwd: string
  /** Directory of the agent. */
  readonly agent_dir: string
}

/** The path of a directory, links resolved. One that is not there contains nothing; its name is still good for comparing. */
export async function withoutLinks(dir: string): Promise<string> {
  return (await realAt(dir)) ?? dir
}

/** Whether a path (absolute, links resolved) is off limits for tools: a sensitive name, the server's own, environment and memory of processes. */
export function isProtected(path: string, around: Surroundings): boolean {
  return isSensitive(path) || processFile.test(path) || belongsToHome(path, around)
}

/** Whether a file that is read without being asked for (a text of a project) is a link to what is off limits for tools. */
export async function leadsOffLimits(path: string, home: string): Promise<boolean> {
  const real = await realAt(path)
  if (real === undefined || real === path) return false
  const own = await withoutLinks(home)
  const nowhere = join(own, 'none')
  const isForeign = !isInside(path, home) && !isInside(path, own)
  return isSensitive(real) || processFile.test(real) || (isForeign && belongsToHome(real, { home: own, cwd: nowhere, agent_dir: nowhere }))
}

/** The plans of an agent, in its directory: the agent writes them. */
export const plansDir = (agent_dir: string): string => join(agent_dir, 'plans')

/**
 * Whether a path is the server's own: all in its home but the user's skills, the results kept for this agent and its plans, the attachments of the
 * session's agents, and a working directory that the home contains.
 */
export function belongsToHome(path: string, { home, cwd, agent_dir }: Surroundings): boolean {
  const lower = path.toLowerCase()
  const inside = (dir: string) => isInside(lower, dir.toLowerCase())
  if (!inside(home) || inside(join(agent_dir, 'tool-results')) || inside(plansDir(agent_dir)) || inside(join(home, 'skills'))) return false
  if (isAttachment(path, dirname(agent_dir))) return false
  return cwd === home || !isInside(cwd, home) || !inside(cwd)
}

/** `<agents of the session>/<agent>/attachments/...` */
function isAttachment(path: string, agents: string): boolean {
  return isInside(path, agents) && relative(agents, path).split(sep)[1] === 'attachments'
}

const processFile = /^\/proc\/(?:kcore$|[^/]+\/(?:task\/[^/]+\/)?(?:environ|mem|auxv)$)/
