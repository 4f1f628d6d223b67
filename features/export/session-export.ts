/** What is in the archive of a session. */
import { arch, platform, release } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { protocolVersion } from '../history/index.ts'
import type { SessionState } from '../sessions/index.ts'
import { archiveOf, type Source, type Text } from './archive.ts'
import { type Entry, entryOf, sessionEntries } from './entries.ts'

const serverLog = 'svc-code.log'
const desktopLog = 'svc-desktop.log'
const idChars = 48

export interface ExportPorts {
  /** Home directory, absolute. */
  readonly home: string
  /** Of the server. */
  readonly version: string
  readonly now: Date
  readonly secrets: readonly string[]
}

/** `svc-session-<id>.zip`, of an id of any form. */
export const fileNameOf = (session_id: string): string => `svc-session-${session_id.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, idChars)}.zip`

/** The bytes of the archive; `web_log`: a log that the client sends along. */
export function exportOf(
  { home, version, now, secrets }: ExportPorts,
  { state, dir }: { readonly state: SessionState; readonly dir: string },
  { web_log, desktop }: { readonly web_log: string | undefined; readonly desktop: boolean }
): Promise<Readable> {
  const logs = join(home, 'logs')
  const manifest = {
    sessionId: state.id,
    exportedAt: now.toISOString(),
    svcCodeVersion: version,
    wireProtocolVersion: protocolVersion,
    os: `${platform()} ${release()} ${arch()}`,
    nodejsVersion: process.version,
    sessionFirstActivity: state.created_at,
    sessionLastActivity: state.updated_at,
    ...(state.title === '' ? {} : { title: state.title }),
    workspaceDir: state.cwd,
    globalLogPath: `logs/global/${serverLog}`,
    ...(web_log === undefined ? {} : { webLogPath: 'logs/svc-web.jsonl' }),
    ...(desktop ? { desktopLogPath: `logs/${desktopLog}` } : {})
  }
  const texts: Text[] = [{ name: 'manifest.json', text: `${JSON.stringify(manifest, undefined, 2)}\n`, kind: 'text' }]
  if (web_log !== undefined) texts.push({ name: 'logs/svc-web.jsonl', text: web_log, kind: 'text' })
  const sources: Source[] = [
    { root: dir, entries: sessionEntries(dir) },
    { root: logs, entries: only(entryOf(`logs/global/${serverLog}`, join(logs, serverLog))) }
  ]
  if (desktop) sources.push({ root: logs, entries: only(entryOf(`logs/${desktopLog}`, join(logs, desktopLog))) })
  return archiveOf(texts, sources, secrets)
}

async function* only(entry: Entry): AsyncGenerator<Entry> {
  yield entry
}
