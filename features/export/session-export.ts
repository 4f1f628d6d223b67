/** What is in the archive of a session. */
import { lstat } from 'node:fs/promises'
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
export async function exportOf(
  { home, version, now, secrets }: ExportPorts,
  { state, dir }: { readonly state: SessionState; readonly dir: string },
  { web_log, desktop }: { readonly web_log: string | undefined; readonly desktop: boolean }
): Promise<Readable> {
  const logs = join(home, 'logs')
  const wanted = [
    { key: 'globalLogPath', name: `logs/global/${serverLog}`, file: join(logs, serverLog) },
    ...(desktop ? [{ key: 'desktopLogPath', name: `logs/${desktopLog}`, file: join(logs, desktopLog) }] : [])
  ]
  const there = await Promise.all(wanted.map(({ file }) => isFile(file)))
  const found = wanted.filter((_, i) => there[i])
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
    ...(web_log === undefined ? {} : { webLogPath: 'logs/svc-web.jsonl' }),
    ...Object.fromEntries(found.map(({ key, name }) => [key, name]))
  }
  const texts: Text[] = [{ name: 'manifest.json', text: `${JSON.stringify(manifest, undefined, 2)}\n`, kind: 'text' }]
  if (web_log !== undefined) texts.push({ name: 'logs/svc-web.jsonl', text: web_log, kind: 'text' })
  const sources: Source[] = [
    { root: dir, entries: sessionEntries(dir) },
    ...found.map(({ name, file }) => ({ root: logs, entries: only(entryOf(name, file)) }))
  ]
  return archiveOf(texts, sources, secrets)
}

async function isFile(file: string): Promise<boolean> {
  const stat = await lstat(file).catch(() => undefined)
  return stat?.isFile() ?? false
}

async function* only(entry: Entry): AsyncGenerator<Entry> {
  yield entry
}
