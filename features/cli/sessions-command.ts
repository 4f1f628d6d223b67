/** `svc-code sessions`: the sessions of a home. */
import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream as WebStream } from 'node:stream/web'
import { type Client, unwrap } from '../../client/index.ts'
import { readToken } from '../../kernel/access/token.ts'
import { shortLine } from '../../kernel/index.ts'
import { CommandError } from './command-error.ts'
import type { CommandLine, Runner } from './commands.ts'
import { homeOf } from './deployment.ts'
import { type Io, json, shortTime, table } from './io.ts'
import { type Reached, withServer } from './servers.ts'
import { ownerOf, type Session, sessionOf } from './session-id.ts'

export const sessions: Runner = (line, io) =>
  withServer(line.flags, io, async reached => {
    const { client } = reached
    switch (line.verb) {
      case 'list':
        return await list(client, line, io)
      case 'show':
        return show(await sessionOf(client, line.words[0] ?? ''), line, io)
      case 'archive':
        for (const { id } of await chosen(client, line)) {
          await unwrap(client.rest.POST('/api/v1/sessions/{session_id}:archive', { params: { path: { session_id: id } } }))
          io.out(`archived ${id}\n`)
        }
        return 0
      case 'export':
        return await exportTo(reached, line, io)
      case 'rm':
        return await remove(reached, line, io)
      default:
        for (const { id } of await chosen(client, line)) {
          await unwrap(client.rest.POST('/api/v1/sessions/{session_id}:restore', { params: { path: { session_id: id } } }))
          io.out(`restored ${id}\n`)
        }
        return 0
    }
  })

/** All of them are found before the first one is touched. */
async function chosen(client: Client, { words }: CommandLine): Promise<Session[]> {
  const found: Session[] = []
  for (const word of words) found.push(await sessionOf(client, word))
  return found
}

/** Deletes sessions with both of their trees; the server that has one open does it. */
async function remove(reached: Reached, line: CommandLine, io: Io): Promise<number> {
  const { flags } = line
  const doomed = await chosen(reached.client, line)
  const named = doomed.map(({ id, title }) => `  ${id}  ${shortLine(title, 60)}`).join('\n')
  if (!flags.yes && !io.interactive) throw new CommandError('nobody can be asked here: rm needs --yes')
  if (!flags.yes && !(await io.ask.confirm(`Delete with all their data, for good?\n${named}`)))
    throw new CommandError('nothing was deleted')
  for (const session of doomed) {
    const owner = await ownerOf(homeOf(flags, io.env), reached, session)
    const path = { session_id: session.id }
    await unwrap(owner.client.rest.DELETE('/api/v1/sessions/{session_id}', { params: { path } }))
    io.out(`deleted ${session.id}\n`)
  }
  return 0
}

/** Writes the archive of a session to a file that is not there yet. */
async function exportTo(reached: Reached, { words: [word = '', given], flags }: CommandLine, io: Io): Promise<number> {
  const session = await sessionOf(reached.client, word)
  const file = resolve(given ?? `svc-session-${session.id}.zip`)
  const owner = await ownerOf(homeOf(flags, io.env), reached, session)
  const answer = await fetch(`${owner.url}/api/v1/sessions/${session.id}/export`, {
    method: 'POST',
    headers: { authorization: `Bearer ${readToken(homeOf(flags, io.env)) ?? ''}`, 'content-type': 'application/json' },
    body: '{}'
  })
  if (!answer.body || answer.headers.get('content-type') !== 'application/zip') {
    const { msg = `the server answered HTTP ${answer.status}` } = (await answer.json().catch(() => ({}))) as { msg?: string }
    throw new CommandError(`${session.id} could not be exported: ${msg}`)
  }
  await saved(answer.body as WebStream, file)
  io.out(`exported ${session.id} to ${file}\n`)
  return 0
}

async function saved(bytes: WebStream, file: string): Promise<void> {
  try {
    await pipeline(Readable.fromWeb(bytes), createWriteStream(file, { flags: 'wx', mode: 0o600 }))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw new CommandError(`${file} is there already`)
    await rm(file, { force: true })
    throw error
  }
}

async function list({ rest }: Client, { flags }: CommandLine, { out }: Io): Promise<number> {
  const { items } = await unwrap(rest.GET('/api/v1/sessions', { params: { query: { include_archive: flags.all ?? false } } }))
  if (flags.json) out(json(items))
  else if (items.length === 0) out(`no sessions${flags.all ? '' : ' (--all shows archived ones)'}\n`)
  else out(table([['session', 'changed', 'state', 'directory', 'title'], ...items.map(row)]))
  return 0
}

function row(session: Session): string[] {
  return [session.id, shortTime(session.updated_at), stateOf(session), String(session.metadata.cwd), shortLine(session.title, 60)]
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
    ['last prompt', shortLine(session.last_prompt ?? '', 200)]
  ]
  out(flags.json ? json(session) : table(rows))
  return 0
}
