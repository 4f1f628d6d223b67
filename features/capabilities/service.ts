/** Capabilities as the packs see them that bring one. */
import { extensionPoint } from '../../kernel/index.ts'
import type { CapabilityStep } from './contract.ts'

/** What is there of a capability. */
export interface Detected {
  /** In the order in which they are shown. */
  readonly steps: readonly CapabilityStep[]
  readonly version?: string
}

/** Tells how far an install is; each call replaces the one before. */
export interface InstallProgress {
  /** `percent` 0 to 100, of what can be measured. */
  step(id: string, percent?: number): void
}

/** Something that this machine can be given: mostly a plugin, and programs beside it. */
export interface Capability {
  /** Unique among all packs; of two, the one that came first counts. */
  readonly id: string
  readonly pluginId?: string
  /** Where the plugin of `pluginId` comes from, as `POST /plugins` takes it. */
  readonly pluginSource?: string
  readonly displayName: string
  readonly description: string
  /** This platform and architecture can have it; otherwise neither of the two below is called. */
  readonly supported: boolean
  /** Looks, and changes nothing. Given up after `detect_ms` of the pack. */
  detect(signal: AbortSignal): Promise<Detected>
  /** Why nothing can be installed here, for people; undefined: it can. */
  unavailable(): string | undefined
  /** Called once at a time, in all servers of the home. Rejects with why, for people; resolves with what is left to do, if anything is. */
  install(progress: InstallProgress, signal: AbortSignal): Promise<string | undefined>
}
export const Capabilities = extensionPoint<Capability>(
  'capabilities',
  undefined,
  {
    id: 'string',
    displayName: 'string',
    description: 'string',
    detect: 'function',
    unavailable: 'function',
    install: 'function'
  },
  { unavailable: () => undefined }
)
