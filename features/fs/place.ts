/** Where the files of a session are. */
import { AppError } from '../../kernel/index.ts'
import { localRuntime, RuntimeMissing, SessionMissing, type Sessions } from '../sessions/index.ts'
import { type Root, rootAt } from './boundary.ts'

/**
 * The working directory of a session, which need not be loaded. The body is read behind it, so that an unknown session is told first. Throws
 * SessionMissing (40401), RuntimeMissing (40420), PathMissing (40409) when the directory is gone.
 */
export async function rootOf<B extends { readonly runtime_id: string }>(
  sessions: Sessions,
  session_id: string,
  input: { readonly body: B }
): Promise<{ readonly root: Root; readonly cwd: string; readonly body: B }> {
  const state = await sessions.state(session_id)
  if (!state) throw new AppError(SessionMissing)
  const { body } = input
  assertLocal(body.runtime_id)
  return { root: await rootAt(state.cwd), cwd: state.cwd, body }
}

export function assertLocal(runtime_id: string): void {
  if (runtime_id !== localRuntime) throw new AppError(RuntimeMissing, { message: `no runtime ${runtime_id.slice(0, 200)}` })
}
