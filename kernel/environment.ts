/** What every part of one kernel shares, built once and handed down whole: options with their defaults, log, guard, clock and ids. */

import { randomFillSync } from 'node:crypto'
import { join } from 'node:path'
import { monotonicFactory } from 'ulid'
import { AppError, developerError, type ErrorSpec, generalErrors, ValidationFailed } from './errors.ts'
import { Guard } from './lifecycle/guard.ts'
import type { ServiceToken } from './lifecycle/services.ts'
import { Hosts } from './lifecycle/slot.ts'
import { longestMs } from './lifecycle/wait.ts'
import { createLog, type Logger, type LogOptions, type OperatorLine } from './log/log.ts'
import type { Pack } from './pack.ts'
import type { Journals } from './realtime/journal.ts'
import { problems } from './schema.ts'
import type { TSchema } from './shapes.ts'
import type { EngineEnvironment, Storage } from './storage/ports.ts'

export interface KernelOptions {
  /** Home directory. */
  readonly home: string
  readonly packs: readonly Pack[]
  /** Product name: the log file is `<product>.log`, the subprotocol of sockets `<product>.bearer.<token>`. Default `kernel`. */
  readonly product?: string
  /** Product version, reported by meta and the documents. */
  readonly version?: string
  /** Deployment options by pack name. */
  readonly config?: Readonly<Record<string, unknown>>
  /** Services that packs may need beside the kernel's own. */
  readonly services?: readonly (readonly [ServiceToken<unknown>, impl: unknown])[]
  /** Names of packs without which start fails. */
  readonly required?: readonly string[]
  /** Default 127.0.0.1. */
  readonly host?: string
  /** Default 58627; 0 takes any free port. A taken port is retried with the next, at most 100 times (contract 1). */
  readonly port?: number
  readonly log?: LogOptions
  /** Gets the lines for whoever runs the server (`ctx.operator`); default: nobody. They are in the log as well. */
  readonly onOperatorLine?: (line: OperatorLine) => void
  /** The engine behind the stores of all packs; default: files below the home. */
  readonly storage?: (env: EngineEnvironment) => Storage
  /** The engine behind the journals of events; default: files below the home. */
  readonly journal?: (env: EngineEnvironment) => Journals
  readonly now?: () => Date
  /** Default: monotonic ULIDs (they sort by creation, also within one millisecond). */
  readonly newId?: () => string
  /** Accepted beside the token. */
  readonly password?: string | undefined
  readonly dangerousBypassAuth?: boolean
  readonly allowRemoteShutdown?: boolean
  readonly debugEndpoints?: boolean
  readonly allowedHosts?: readonly string[]
  readonly disableHostCheck?: boolean
  readonly corsOrigins?: readonly string[]
  /** Reported to packs, which then call nobody but model servers on this machine. */
  readonly offline?: boolean
  /** JSON body limit in bytes; default 1 MiB. */
  readonly bodyLimitBytes?: number
  /** Unsent bytes after which a slow WebSocket reader loses its connection; default 8 MiB. */
  readonly connectionBufferBytes?: number
  /**
   * How long a frame handler, loading a session for its subscriber, or a listener that somebody waits for may take before things go on without
   * it, ms; default 30 s.
   */
  readonly frameTimeoutMs?: number
  /**
   * So long a new client has to say whose replays it wants, ms; default 1 s: events for everyone of sessions that it may know from before wait
   * for its first frame. It says so when it has read `server_hello`, a round trip away; until then nobody knows what must not overtake a replay.
   */
  readonly firstFrameMs?: number
  /** Time limit of a pack's setup, ms; default 10 s. */
  readonly setupTimeoutMs?: number
  /** How long running requests may go on when their pack unloads or the server stops, ms; default 5 s. */
  readonly graceMs?: number
  /** A call of a pack that holds the event loop for longer is logged and shown in `meta.features`, ms; default 500. */
  readonly loopLimitMs?: number
  /** A pack that fails so often within so many ms becomes Failed; default: never. */
  readonly faultLimit?: { readonly count: number; readonly within_ms: number } | undefined
  /** Check replies, events and acks against their schemas. For tests. */
  readonly strict?: boolean
  readonly onViolation?: (error: Error) => void
}

/** Options with every default filled in. */
export type FilledOptions = Required<Omit<KernelOptions, Unfilled>> & Pick<KernelOptions, Unfilled>

type Unfilled = 'password' | 'storage' | 'journal' | 'faultLimit'

/** Contract 1. */
export const defaultPort = 58627

/** An option that is undefined counts as not given. */
function withDefaults(options: KernelOptions): FilledOptions {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as KernelOptions
  const filled = {
    product: 'kernel',
    version: '0.0.0',
    services: [],
    config: {},
    required: [],
    host: '127.0.0.1',
    port: defaultPort,
    log: {},
    onOperatorLine: () => undefined,
    now: () => new Date(),
    newId: ulidSource(),
    dangerousBypassAuth: false,
    allowRemoteShutdown: false,
    debugEndpoints: false,
    allowedHosts: [],
    disableHostCheck: false,
    corsOrigins: [],
    offline: false,
    bodyLimitBytes: 1_048_576,
    connectionBufferBytes: 8 * 1_048_576,
    frameTimeoutMs: 30_000,
    firstFrameMs: 1000,
    setupTimeoutMs: 10_000,
    graceMs: 5_000,
    loopLimitMs: 500,
    strict: false,
    onViolation: () => undefined,
    ...given
  }
  const inTimer = (ms: number) => Math.min(ms, longestMs)
  return {
    ...filled,
    frameTimeoutMs: inTimer(filled.frameTimeoutMs),
    firstFrameMs: inTimer(filled.firstFrameMs),
    graceMs: inTimer(filled.graceMs)
  }
}

/**
 * A source of monotonic ULIDs. Randomness is taken in blocks: the library would ask the system for each of 16 characters at every new
 * millisecond, which costs more than the rest of a request.
 */
function ulidSource(): () => string {
  const pool = new Uint8Array(1024)
  let used = pool.length
  const next = monotonicFactory(() => {
    if (used === pool.length) {
      randomFillSync(pool)
      used = 0
    }
    return (pool[used++] ?? 0) / 256
  })
  return () => next()
}

/** In tests (`strict`): tells of a value that misses the shape it was declared with. */
export function checkShape({ strict, onViolation }: FilledOptions, what: string, schema: TSchema, value: unknown, root?: string): void {
  const details = strict ? problems(schema, value, root) : []
  if (details.length > 0) onViolation(developerError('shape_missed', what, details))
}

/** In tests (`strict`): tells of an error that is neither general nor declared. */
export function checkDeclared({ strict, onViolation }: FilledOptions, what: string, error: unknown, declared: readonly ErrorSpec[]): void {
  if (!strict || !AppError.is(error)) return
  if (![...generalErrors, ...declared].some(known => known.code === error.code))
    onViolation(developerError('error_undeclared', what, error.spec))
}

/** Every 40001 lists what was wrong, also when the thrower named no field (contract 1, Response envelope rule 3). */
export function detailsOf({ code, message, details }: AppError): AppError['details'] {
  return details ?? (code === ValidationFailed.code ? [{ path: '', message }] : undefined)
}

export interface Environment {
  /** Options with their defaults; `home` is absolute. */
  readonly options: FilledOptions
  readonly log: Logger
  readonly guard: Guard
  /** Sessions, agents and connections, by the slots they hold values of. */
  readonly hosts: Hosts
  now(): Date
  /** Monotonic ULID. */
  newId(): string
}

/** The environment of one kernel; `home` must be absolute. */
export function createEnvironment(given: KernelOptions): Environment {
  const options = withDefaults(given)
  const log = createLog(options.log, join(options.home, 'logs', `${options.product}.log`))
  const guard = new Guard(log, options)
  const hosts = new Hosts(guard, options.setupTimeoutMs)
  return { options, log, guard, hosts, now: options.now, newId: options.newId }
}
