/** How this installation introduces itself to the servers of its vendor. */
import { randomUUID } from 'node:crypto'
import { unlink } from 'node:fs/promises'
import { arch, hostname, platform, release, type } from 'node:os'
import { join } from 'node:path'
import { makeFile, readBounded, serviceToken } from '../../kernel/index.ts'
import type { ResolvedModel } from './request.ts'

/** Who asks, for requests to the account, to `svc` providers and to the services of their vendor; nobody else hears of it. */
export interface HostIdentity {
  /** User agent and device headers, lower-case names. The device id is made at the first call and kept in `<home>/device_id`. */
  headers(): Promise<Readonly<Record<string, string>>>
}

export const HostIdentity = serviceToken<HostIdentity>('host-identity')

const deviceIdName = 'x-svc-device-id'

export function hostIdentity(home: string, version: string): HostIdentity {
  let known: Promise<Readonly<Record<string, string>>> | undefined
  return {
    headers() {
      known ??= headersOf(home, version)
      return known
    }
  }
}

/** The model as it is sent, and as its secrets are known: what else is told of the host, errors may repeat. */
export async function introduced(
  { own_headers, ...model }: ResolvedModel,
  identity: HostIdentity
): Promise<[ResolvedModel, ResolvedModel]> {
  const host = await identity.headers()
  const sent = { ...model, headers: { ...model.headers, ...host, ...own_headers } }
  return [sent, { ...sent, headers: { ...model.headers, [deviceIdName]: host[deviceIdName] ?? '' } }]
}

async function headersOf(home: string, version: string): Promise<Readonly<Record<string, string>>> {
  return {
    'user-agent': `svc-code/${version}`,
    'x-svc-platform': platform(),
    'x-svc-version': version,
    'x-svc-device-name': ascii(hostname()),
    'x-svc-device-model': ascii(`${type()} ${arch()}`),
    'x-svc-os-version': ascii(release()),
    // A home that cannot keep the id is no reason to ask nobody: this process then has one of its own.
    [deviceIdName]: await deviceId(home).catch(() => randomUUID())
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
