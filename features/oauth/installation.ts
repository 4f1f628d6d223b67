/** What the home says of this installation: how it introduces itself to the account, and the region it belongs to. */
import { randomUUID } from 'node:crypto'
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { unlink } from 'node:fs/promises'
import { arch, hostname, platform, release, type } from 'node:os'
import { join } from 'node:path'
import { makeFile, readBounded } from '../../kernel/index.ts'
import { type Region, regions } from './contract.ts'

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

/** Servers that start at once on a fresh home agree on one id: the first one wins. */
async function deviceId(home: string): Promise<string> {
  const file = join(home, 'device_id')
  const known = await read(file)
  if (known) return known
  if (known === '') await unlink(file)
  await makeFile(file, randomUUID())
  return (await read(file)) ?? ''
}

/** Undefined: no file. Empty: nothing usable in it. */
async function read(file: string): Promise<string | undefined> {
  try {
    const id = (await readBounded(file, 64 * 1024)).toString().trim()
    return /^[A-Za-z0-9._-]{8,128}$/.test(id) ? id : ''
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function ascii(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, 100) || 'unknown'
}

/**
 * Region that the marker file `<home>/region` names; undefined without a usable one, or with `SVC_CODE_REGION_MARKER=off`. One small read
 * in place.
 */
export function markedRegion(home: string, env: NodeJS.ProcessEnv): Region | undefined {
  if (env.SVC_CODE_REGION_MARKER?.trim().toLowerCase() === 'off') return undefined
  try {
    const text = smallText(join(home, 'region')).trim()
    return regions.find(region => region === text)
  } catch {
    return undefined // no marker, or none that can be read: the default counts
  }
}

/** Content of a small file; of a larger one nothing. Read in place, so no pipe may hold it up. */
function smallText(path: string): string {
  const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  try {
    const bytes = Buffer.alloc(256)
    const count = readSync(file, bytes)
    return count < bytes.length ? bytes.toString('utf8', 0, count) : ''
  } finally {
    closeSync(file)
  }
}
