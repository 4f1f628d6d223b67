/** The offline switch: whether it is on, and whom it still lets through. */
import { Type } from '../../kernel/index.ts'
import type { Config, ConfigSection } from '../config/index.ts'
import { OutboundRefused } from './outbound.ts'

const Switch = Type.Boolean()

/** `offline`: nobody is called but providers on this machine. The environment can only switch it on; a value that is none counts as on. */
export const offlineSection: ConfigSection<typeof Switch> = {
  name: 'offline',
  schema: Switch,
  default: false,
  overlay: env => (isOfflineEnvironment(env) ? true : undefined),
  salvage: () => true
}

/** The section of a server: when it was started offline, that is as good as the environment saying so. */
export function startedOffline(section: typeof offlineSection, started: boolean): typeof offlineSection {
  return started ? { ...section, overlay: () => true } : section
}

/** True for `SVC_CODE_OFFLINE=1`, and for everything else but 0, false, no, off and nothing. */
export function isOfflineEnvironment(env: NodeJS.ProcessEnv): boolean {
  const text = env.SVC_CODE_OFFLINE?.trim().toLowerCase() ?? ''
  return !['', '0', 'false', 'no', 'off'].includes(text)
}

/** What the switch is made of. */
interface OfflineParts {
  readonly config: Pick<Config, 'get' | 'diagnostics'>
  /** The operator started the server offline. */
  readonly started: boolean
  /** The server of a configured provider on this machine. */
  readonly isLocalProvider: (url: URL) => boolean
}

/** The switch as it stands now. */
export class Offline {
  readonly #parts: OfflineParts
  /** The file has been readable at some time, so its last good content counts. */
  #read = false

  constructor(parts: OfflineParts) {
    this.#parts = parts
  }

  /** Why nobody else may be called; undefined when everybody may. */
  reason(): string | undefined {
    const { config, started } = this.#parts
    if (started) return 'the server runs offline (--offline or SVC_CODE_OFFLINE)'
    this.#read ||= !config.diagnostics().some(({ domain }) => domain === undefined)
    // What cannot be read may be the switch.
    if (!this.#read) return 'config.toml cannot be read, and it may say offline = true'
    return config.get(offlineSection) ? 'the server runs offline (offline = true in config.toml, or SVC_CODE_OFFLINE)' : undefined
  }

  /** Lets the URL pass or throws OutboundRefused. */
  guard(url: URL): void {
    const reason = this.reason()
    if (reason !== undefined && !this.#parts.isLocalProvider(url)) throw new OutboundRefused(url, reason)
  }

  /** What `guard` would do; without a URL nobody can tell, so it counts as refused. */
  refuses(url: string | undefined): boolean {
    return url === undefined || !URL.canParse(url) || !this.#parts.isLocalProvider(new URL(url))
  }
}
