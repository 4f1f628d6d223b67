/** How this installation introduces itself to the account: user agent and device headers. */
import { randomUUID } from 'node:crypto'
import { link, readFile, unlink, writeFile } from 'node:fs/promises'
import { arch, hostname, platform, release, type } from 'node:os'
import { join } from 'node:path'

/** Headers of every request; the device id is made at the first one and kept in `<home>/device_id`. */
export function deviceHeaders(home: string, version: string): () => Promise<Readonly<Record<string, string>>> {
  let known: Promise<Readonly<Record<string, string>>> | undefined
  return () => {
    known ??= headersOf(home, version)
    return known
  }
}

async function headersOf(home: string, version: string): Promise<Readonly<Record<string, string>>> {
  return {
    'user-agent': `svc-code/${version}`,
    'x-svc-platform': platform(),
    'x-svc-version': version,
    'x-svc-device-name': ascii(hostname()),
    'x-svc-device-model': ascii(`${type()} ${arch()}`),
    'x-svc-os-version': ascii(release()),
    // A home that cannot keep the id is no reason to have no login: this process then has one of its own.
    'x-svc-device-id': await deviceId(home).catch(() => randomUUID())
  }
}

/** Servers that start at once on a fresh home agree on one id: the first link wins. */
async function deviceId(home: string): Promise<string> {
  const file = join(home, 'device_id')
  const known = await read(file)
  if (known) return known
  const mine = `${file}~${randomUUID()}`
  await writeFile(mine, randomUUID(), { mode: 0o600, flag: 'wx' })
  try {
    if (known === '') await unlink(file)
    await link(mine, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await unlink(mine)
  }
  return (await read(file)) ?? ''
}

/** Undefined: no file. Empty: nothing usable in it. */
async function read(file: string): Promise<string | undefined> {
  try {
    const id = (await readFile(file, 'utf8')).trim()
    return /^[A-Za-z0-9._-]{8,128}$/.test(id) ? id : ''
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function ascii(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, 100) || 'unknown'
}
