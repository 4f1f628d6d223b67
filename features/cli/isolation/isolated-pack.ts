/**
 * Packs that run in processes of their own: for the kernel each is a pack like others, whose setup happens elsewhere. Its process comes and
 * goes with its activation; one that ends by itself takes the pack out as Failed, and it is set up again a while later.
 */
import { isDeepStrictEqual } from 'node:util'
import { definePack, type Pack, type PackContext, PassingFailure, serviceToken } from '../../../kernel/index.ts'
import { assertOutbound } from '../../llm/index.ts'
import type { Origin } from '../pack-files.ts'
import { createDoor } from './door.ts'
import type { PackFacts } from './facts.ts'
import type { IsolationOptions } from './options.ts'
import { PackProcess, ProcessEnded } from './process.ts'
import { Kept } from './values.ts'

/** A process that has imported the module. */
interface Begun {
  readonly process: PackProcess
  readonly facts: readonly PackFacts[]
}

/** How long a process without a pack waits for one, ms. */
const idleMs = 30_000
/** How long a pack may take to leave, ms. */
const stopMs = 5_000
const firstPauseMs = 500
const longestPauseMs = 60_000
/** So long active, and what was before does not count any more, ms. */
const settledMs = 60_000

/** A reload that fails goes back to what was read before. */
const versionsKept = 2

/** By module, then by version and options: those that counted last, the latest behind. */
const modules = new Map<string, Map<string, Promise<Pack[]>>>()

/** A module, and which time it was read: another version is read anew. */
interface ModuleVersion {
  readonly url: string
  readonly version: number
}

/** The packs of a module; the same as before where it did not change. Rejects with why there are none. */
export function isolatedPacks(origin: Origin, { url, version }: ModuleVersion, options: IsolationOptions): Promise<Pack[]> {
  const known = modules.get(url) ?? new Map<string, Promise<Pack[]>>()
  modules.set(url, known)
  const key = JSON.stringify([version, options])
  const loading = known.get(key) ?? loadIsolated(origin, options)
  known.delete(key)
  known.set(key, loading)
  loading.catch(() => known.delete(key)) // the next one may find what was missing
  const [earliest = key] = known.keys()
  if (known.size > versionsKept) known.delete(earliest)
  return loading
}

/** The packs of a module, imported in a process of its own. Rejects with why there are none. */
export async function loadIsolated(origin: Origin, options: IsolationOptions): Promise<Pack[]> {
  const begun = await begin(origin, options)
  let spare: Begun | undefined = begun
  begun.process.hold(false)
  const timer = setTimeout(() => {
    spare = undefined
    begun.process.kill('nobody needed it')
  }, idleMs).unref()
  void begun.process.ended.then(() => {
    spare = undefined
    clearTimeout(timer)
  })
  const take = () => {
    const taken = spare
    spare = undefined
    clearTimeout(timer)
    taken?.process.hold(true)
    return taken
  }
  return begun.facts.map(facts => new IsolatedPack(facts, origin, options, take).pack)
}

async function begin(origin: Origin, options: IsolationOptions): Promise<Begun> {
  const root = { blame: () => undefined, log: () => undefined, outbound: (url: URL) => assertOutbound(url) }
  const process = new PackProcess({ ...options, root })
  try {
    return { process, facts: (await process.peer.call(0, 'begin', [{ env: { ...globalThis.process.env }, ...origin }])) as PackFacts[] }
  } catch (error) {
    process.kill('its module could not be imported')
    throw error
  }
}

class IsolatedPack {
  readonly pack: Pack
  readonly #facts: PackFacts
  readonly #origin: Origin
  readonly #options: IsolationOptions
  readonly #take: () => Begun | undefined
  #process: PackProcess | undefined
  #restarts = 0
  /** Ends in a row that nobody wanted. */
  #failures = 0
  /** It is to be set up again after the last of them. */
  #again = false
  #activeAt: number | undefined

  constructor(facts: PackFacts, origin: Origin, options: IsolationOptions, take: () => Begun | undefined) {
    this.#facts = facts
    this.#origin = origin
    this.#options = options
    this.#take = take
    const { name, version, description, area, config, errors, source, broken } = facts
    const tokens = (ids: PackFacts['needs']) => Object.fromEntries(Object.entries(ids).map(([key, id]) => [key, serviceToken(id)]))
    const declared = definePack({
      ...{ name, version, description, area, errors },
      needs: tokens(facts.needs),
      optional: tokens(facts.optional),
      provides: facts.provides.map(({ id, listening }) => serviceToken(id, listening)),
      setup: (ctx, services) => this.#setup(ctx as unknown as PackContext, services)
    })
    this.pack = {
      ...declared,
      config,
      broken: broken === undefined ? undefined : new Error(broken),
      source,
      process: () => ({ pid: this.#process?.pid, memory_bytes: this.#process?.memory || undefined, restarts: this.#restarts })
    }
  }

  async #setup(ctx: PackContext, services: Readonly<Record<string, unknown>>): Promise<void> {
    if (this.#again) this.#restarts++
    else this.#failures = 0 // somebody loaded it
    this.#again = false
    const { process } = await this.#begun()
    let leaving = false
    this.#process = process
    void process.ended.then(() => {
      if (this.#process === process) this.#process = undefined
    })
    process.peer.root = createDoor({ ctx, escaped: error => process.blame(`an exception escaped: ${textOf(error)}`) })
    process.onPrinted((line, stream) => ctx.log[stream === 'stdout' ? 'info' : 'warn']({ stream }, line))
    process.onFailed((what, error) => ctx.blame(ctx.name, what, error))
    ctx.own(() => {
      leaving = true
      return process.stop(stopMs).finally(() => process.onFailed(() => undefined)) // the context throws from then on
    })
    const { name, config, home, log } = ctx
    const given = { name, config, home, hooks: Object.keys(ctx.hooks), level: log.level }
    this.#activeAt = undefined
    await process.peer.call(0, 'setup', [given, this.#servicesFor(services)]).catch((error: unknown) => {
      throw error instanceof ProcessEnded ? this.#failure(error) : error
    })
    this.#activeAt = performance.now()
    void process.ended.then(error => {
      if (!leaving) ctx.fail(this.#failure(error))
    })
  }

  /** The one that told of the pack, or another one, which must tell the same. */
  async #begun(): Promise<Begun> {
    const spare = this.#take()
    if (spare) return spare
    const begun = await begin(this.#origin, this.#options).catch((error: unknown) => {
      throw error instanceof ProcessEnded ? this.#failure(error) : error
    })
    const now = begun.facts.find(facts => facts.name === this.#facts.name)
    if (isDeepStrictEqual(now, this.#facts)) return begun
    begun.process.kill('its file has changed')
    throw new Error(now?.broken ?? 'its file has changed since it was loaded: reload it')
  }

  #servicesFor(services: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const { needs, optional } = this.#facts
    const kept = (service: unknown) => (typeof service === 'object' && service !== null ? new Kept(service) : service)
    return {
      ...Object.fromEntries(Object.keys(needs).map(key => [key, kept(services[key])])),
      ...Object.fromEntries(Object.keys(optional).map(key => [key, () => kept((services[key] as () => unknown)())]))
    }
  }

  /** What its end means for the pack. */
  #failure({ message }: ProcessEnded): Error {
    if (this.#activeAt !== undefined && performance.now() - this.#activeAt > settledMs) this.#failures = 0
    this.#failures++
    const { restarts } = this.#options
    if (this.#failures > restarts)
      return new Error(restarts === 0 ? message : `${message}; it was started ${restarts} times again and ended each time`)
    this.#again = true
    const ms = Math.min(longestPauseMs, firstPauseMs * 2 ** (this.#failures - 1))
    return new PassingFailure(`${message}; it starts again in ${ms / 1_000} s`, ms)
  }
}

const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
