/** `svc-code sessions`: the sessions of a home. */
import { type Client, unwrap } from '../../client/index.ts'
import type { CommandLine, Runner } from './commands.ts'
import { clip, type Io, json, shortTime, table } from './io.ts'
import { withServer } from './servers.ts'
import { type Session, sessionOf } from './session-id.ts'

export const sessions: Runner = (line, io) =>
  withServer(line.flags, io, async ({ client }) => {
    switch (line.verb) {
      case 'list':
        return await list(client, line, io)
      case 'show':
        return show(await sessionOf(client, line.words[0] ?? ''), line, io)
      case 'archive':
        return await each(client, line, async ({ id }) => {
          await unwrap(client.rest.POST('/api/v1/sessions/{session_id}:archive', { params: { path: { session_id: id } } }))
          io.out(`archived ${id}\n`)
        })
      default:
        return await each(client, line, async ({ id }) => {
          await unwrap(client.rest.POST('/api/v1/sessions/{session_id}:restore', { params: { path: { session_id: id } } }))
          io.out(`restored ${id}\n`)
        })
    }
  })

/** All ids are found before the first session is touched. */
async function each(client: Client, { words }: CommandLine, act: (session: Session) => Promise<void>): Promise<number> {
  const chosen: Session[] = []
  for (const word of words) chosen.push(await sessionOf(client, word))
  for (const session of chosen) await act(session)
  return 0
}

async function list({ rest }: Client, { flags }: CommandLine, { out }: Io): Promise<number> {
  const { items } = await unwrap(rest.GET('/api/v1/sessions', { params: { query: { include_archive: flags.all ?? false } } }))
  if (flags.json) out(json(items))
  else if (items.length === 0) out(`no sessions${flags.all ? '' : ' (--all shows archived ones)'}\n`)
  else out(table([['session', 'changed', 'state', 'directory', 'title'], ...items.map(row)]))
  return 0
}

function row(session: Session): string[] {
  return [session.id, shortTime(session.updated_at), stateOf(session), String(session.metadata.cwd), clip(session.title, 60)]
}

function stateOf({ archived, busy, pending_interaction, last_turn_reason }: Session): string {
  if (pending_interaction !== 'none') return `asks (${pending_interaction})`
  if (busy) return 'busy'
  return archived ? 'archived' : (last_turn_reason ?? 'new')
}

function show(session: Session, { flags }: CommandLine, { out }: Io): number {
  const rows: [string, string][] = [
    ['session', session.id],
    ['title', session.title],
    ['state', stateOf(session)],
    ['directory', String(session.metadata.cwd)],
    ['workspace', session.workspace_id],
    ['created', shortTime(session.created_at)],
    ['changed', shortTime(session.updated_at)],
    ...(session.archived_at === undefined ? [] : [['archived', shortTime(session.archived_at)] as [string, string]]),
    ['last prompt', clip(session.last_prompt ?? '', 200)]
  ]
  out(flags.json ? json(session) : table(rows))
  return 0
}
