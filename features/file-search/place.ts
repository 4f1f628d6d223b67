/** Where the files of a session are. */
import { access, constants, realpath, stat } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { AppError, headOf, realAt } from '../../kernel/index.ts'
import { localRuntime, RuntimeMissing, SessionMissing, type Sessions } from '../sessions/index.ts'
import { PathDenied, PathMissing, type Workspaces } from '../workspaces/index.ts'

/** A workspace: its directory as registered, and where that is. */
export interface Root {
  readonly path: string
  readonly real: string
}

/** Throws PathMissing (40409) when the directory is gone. */
export async function rootAt(path: string): Promise<Root> {
  try {
    return { path, real: (await realAt(path)) ?? (await realpath(path)) } // why it has none, the slower call says
  } catch (cause) {
    throw new AppError(PathMissing, { message: `path ${path} does not exist`, cause })
  }
}

/**
 * Refuses what a search could find nothing in. Throws PathMissing (40409) for what is no directory, PathDenied (40411) for one that this server
 * may not look into.
 */
export async function assertSearchable({ path, real }: Root): Promise<void> {
  await access(`${real}/.`, constants.R_OK | constants.X_OK).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOTDIR') throw new AppError(PathMissing, { message: `path ${path} is not a directory`, cause })
    throw new AppError(PathDenied, { message: `no permission for ${path}`, cause })
  })
}

/**
 * The working directory of a session, which need not be loaded. The body is read behind it, so that an unknown session is told first. Throws
 * SessionMissing (40401), RuntimeMissing (40420).
 */
export async function directoryOf<B extends { readonly runtime_id: string }>(
  sessions: Sessions,
  session_id: string,
  input: { readonly body: B }
): Promise<{ readonly cwd: string; readonly body: B }> {
  const state = await sessions.state(session_id)
  if (!state) throw new AppError(SessionMissing)
  const { body } = input
  assertLocal(body.runtime_id)
  return { cwd: state.cwd, body }
}

/** As `directoryOf`, and where that is. Throws PathMissing (40409), too, when the directory is gone. */
export async function rootOf<B extends { readonly runtime_id: string }>(
  sessions: Sessions,
  session_id: string,
  input: { readonly body: B }
): Promise<{ readonly root: Root; readonly cwd: string; readonly body: B }> {
  const found = await directoryOf(sessions, session_id, input)
  return { root: await rootAt(found.cwd), ...found }
}

export function assertLocal(runtime_id: string): void {
  if (runtime_id !== localRuntime) throw new AppError(RuntimeMissing, { message: `no runtime ${headOf(runtime_id, 200)}` })
}

/** The directory of a workspace: of a registered one by its id, or an absolute path, which is registered when it is not. Undefined: neither. */
export async function workspaceDirectory(workspaces: Workspaces, given: string): Promise<string | undefined> {
  const known = await workspaces.get(given)
  if (known) return known.root
  if (!isAbsolute(given) || given.includes('\0')) return undefined
  const usable = await stat(given).catch(() => undefined) // nothing there
  if (!usable?.isDirectory()) return undefined
  // Clients search with each key that is typed: a workspace that is known is not registered again, because everybody would be told of it.
  return ((await workspaces.get(workspaces.idOf(given))) ?? (await workspaces.register(given, async record => record))).root
}
