/** Who may be called: guards in front of every request, and the list of hosts that packs may call. */
import { extensionPoint, serviceToken } from '../../kernel/index.ts'

/** Somebody who may be called. */
export interface OutboundHost {
  /** Only its origin is shown. Absent: whoever makes the request names it. */
  readonly url?: string
  /** What for: `models of provider work`. */
  readonly why: string
  /** On which occasion: `a turn`. */
  readonly when: string
}

/** What one pack may call at this moment. */
export interface OutboundSource {
  readonly pack: string
  hosts(): readonly OutboundHost[] | Promise<readonly OutboundHost[]>
}

/** Every pack that calls anybody contributes here; `svc-code doctor --network` shows it. */
export const OutboundHosts = extensionPoint<OutboundSource>('outbound-hosts', { hosts: 'promise' }, { pack: 'string', hosts: 'function' })

/** What `svc-code doctor --network` prints. */
export interface OutboundReport {
  /** Why the server runs offline; undefined when it does not. */
  readonly offline: string | undefined
  /** `refused`: the offline switch is in the way. */
  readonly hosts: readonly (OutboundHost & { readonly pack: string; readonly refused: boolean })[]
}

/** The list of all packs. */
export interface Outbound {
  /** Everything that may be called, as configured right now. */
  report(): Promise<OutboundReport>
}

/** Of the llm pack. */
export const Outbound = serviceToken<Outbound>('outbound')

/** A request that was not sent. `code` is `EOFFLINE`; trying again changes nothing. */
export class OutboundRefused extends Error {
  override readonly name = 'OutboundRefused'
  readonly code = 'EOFFLINE'

  /** `why`: the switch that is in the way. */
  constructor(url: URL, why: string) {
    super(`${url.host} was not called: ${why}`)
  }
}

/** Throws OutboundRefused for a URL that must not be called. */
type OutboundGuard = (url: URL) => void | Promise<void>

/** Of the whole process, not handed from pack to pack: a pack that could forget the switch would be a hole in it. */
const guards = new Set<{ readonly guard: OutboundGuard }>()

/** Asks the guard before every request of every `createUpstream`, until the returned undo. */
export function guardOutbound(guard: OutboundGuard): () => void {
  const entry = { guard }
  guards.add(entry)
  return () => {
    guards.delete(entry)
  }
}

/** Rejects with the first guard's OutboundRefused. For packs that call without `createUpstream`. */
export async function assertOutbound(url: URL): Promise<void> {
  for (const { guard } of [...guards]) {
    const asked = guard(url)
    if (asked) await asked
  }
}
