/** Path rules of the file tools: where a given path leads, and whether the tools may go there. */
import { dirname, isAbsolute, join, relative } from 'node:path'
import { homeOfUser, isMissing } from '../../kernel/index.ts'
import {
  absolutePath,
  isBelowUser,
  isInside,
  isProtected,
  isSecretLink,
  isSensitive,
  matchPath,
  matchText,
  type RulePart,
  type Surroundings,
  type ToolEnv,
  ToolRefusal
} from '../tools/index.ts'
import type { FileOps } from './file-ops.ts'

export interface Place {
  /** Absolute, as displayed. */
  readonly path: string
  /** Symbolic links resolved, as far as the path exists. */
  readonly real: string
  /** The working directory, symbolic links resolved. */
  readonly cwd: string
}

/** What the path rules need to know of the machine. */
export interface PlacePorts {
  readonly ops: FileOps
  /** The server's home, absolute. */
  readonly home: string
}

/**
 * Resolves a path given by the model: relative to the working directory, `~` expands. Throws ToolRefusal when a relative path leaves the
 * working directory (directly or through a symbolic link) or something protected is named.
 */
export async function locate(given: string, env: ToolEnv, ports: PlacePorts): Promise<Place> {
  if (given.includes('\0')) throw new ToolRefusal('The path contains a NUL character.')
  const { cwd } = env
  const path = absolutePath(given, cwd)
  const real = await realOf(path, ports.ops)
  const around = await surroundings(env, ports)
  const free = isBelowUser(given) || isAbsolute(given)
  if (!free && (!isInside(path, cwd) || !isInside(real, around.cwd))) {
    throw new ToolRefusal(`The path ${given} leads out of the working directory. Use an absolute path for files elsewhere.`)
  }
  if (isSensitive(path) || isProtected(real, around) || (await isSecretLink(real, around.home)))
    throw new ToolRefusal(`The file ${path} may hold credentials and is off limits for file tools.`)
  return { path, real, cwd: around.cwd }
}

export async function surroundings(env: ToolEnv, { ops, home }: PlacePorts): Promise<Surroundings> {
  const [real_home, cwd, agent_dir] = await Promise.all([home, env.cwd, env.agent.dir].map(path => realOf(path, ops)))
  return { home: real_home!, cwd: cwd!, agent_dir: agent_dir! }
}

/** Throws ToolRefusal when the path leads elsewhere by now: what was checked and approved is no longer what would be touched. */
export async function assertSame(place: Place, ops: FileOps): Promise<void> {
  if ((await realOf(place.path, ops)) !== place.real) throw new ToolRefusal(`${place.path} leads to another file now. Make the call again.`)
}

/** Throws ToolRefusal when the file cannot be written, or made, where it is to be: no permission, or no directory on the way. */
export async function assertWritable(place: Place, ops: FileOps): Promise<void> {
  const dir = await existing(dirname(place.real), ops)
  if ((await ops.stat(dir))?.kind !== 'directory') throw new ToolRefusal(`${dir} is not a directory.`)
  const there = (await ops.stat(place.real)) !== undefined
  if (!((there && (await ops.mayWrite(place.real))) || (await ops.mayFill(dir)))) throw new ToolRefusal(`No permission for ${place.path}.`)
}

/** The path, or the nearest one above it that exists. */
async function existing(path: string, ops: FileOps): Promise<string> {
  return (await ops.stat(path)) || dirname(path) === path ? path : existing(dirname(path), ops)
}

/**
 * What approvals and rules see of a call on a path. What counts is the file that is touched: a rule that allows must cover it, not just a
 * link that leads to it. Links on the way to the working directory are no detour.
 */
export function pathRule(place: Place, cwd: string): { readonly approval_argument: string; readonly parts: readonly RulePart[] } {
  const home = homeOfUser()
  const direct = place.real === place.path || place.real === join(place.cwd, relative(cwd, place.path))
  const real = (pattern: string) => matchPath(pattern, place.real, { cwd: place.cwd, home })
  const given = (pattern: string) => matchPath(pattern, place.path, { cwd, home })
  const part = {
    covers: (pattern: string) => real(pattern) || (direct && given(pattern)),
    names: (pattern: string) => real(pattern) || given(pattern)
  }
  return { approval_argument: place.real, parts: [part] }
}

/** What rules see of a search: its pattern. An approval for the session covers every search. */
export function searchRule(pattern: string): { readonly parts: readonly RulePart[] } {
  const matches = (rule: string) => matchText(rule, pattern)
  return { parts: [{ covers: matches, names: matches }] }
}

/** Errno of a failed operation as a sentence for the model. */
export function refusal(error: unknown, path: string): unknown {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  if (isMissing(error)) return new ToolRefusal(`The file ${path} does not exist.`)
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') return new ToolRefusal(`No permission for ${path} (${code}).`)
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'ELOOP' || code === 'ENAMETOOLONG' || code === 'EISDIR')
    return new ToolRefusal(`The operation on ${path} failed (${code}).`)
  return error
}

/** Where a path leads. Throws ToolRefusal. */
function realOf(path: string, ops: FileOps): Promise<string> {
  return ops.leadsTo(path).catch((error: unknown) => Promise.reject(refusal(error, path)))
}
