/** Finds the session that a person names, and the server that has it. */
import { join } from 'node:path'
import { ApiError, type Client, type Data, unwrap } from '../../client/index.ts'
import { lockHolder } from '../../kernel/index.ts'
import { listInstances } from '../instances/index.ts'
import { CommandError } from './command-error.ts'
import { type Reached, reach } from './servers.ts'

export type Session = Data<'/api/v1/sessions', 'get'>['items'][number]

/** The session whose id begins so, with or without `session_`. Throws when there is none or more than one. */
export async function sessionOf({ rest }: Client, given: string): Promise<Session> {
  const id = given.startsWith('session_') ? given : `session_${given}`
  const path = { session_id: id }
  const exact = await unwrap(rest.GET('/api/v1/sessions/{session_id}', { params: { path } })).catch((error: unknown) => {
    if (error instanceof ApiError && error.code === 40401) return undefined
    throw error
  })
  if (exact) return exact
  const { items } = await unwrap(rest.GET('/api/v1/sessions', { params: { query: { include_archive: true } } }))
  const found = items.filter(one => one.id.startsWith(id))
  if (found.length === 1 && found[0]) return found[0]
  throw new CommandError(
    found.length === 0 ? `no session ${given}` : `${given} fits ${found.length} sessions: ${found.map(one => one.id).join(', ')}`
  )
}

/** The server that has the session open, when it is another one of the home: only there live events arrive and writes are taken. */
export async function ownerOf(home: string, reached: Reached, { id, workspace_id }: Session): Promise<Reached> {
  const holder = await lockHolder(join(home, 'sessions', workspace_id, id, 'lock'))
  if (!holder || holder.pid === reached.instance?.pid) return reached
  const instance = (await listInstances(home)).find(one => one.pid === holder.pid)
  return instance ? reach(home, instance) : reached
}
