/** Testing a pack through its front door: a real server on port 0, a typed client, an event recorder, stubs, a leak check. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Static } from '@sinclair/typebox'
import type { AnyRoute, EventSpec } from '../contract.ts'
import { createEnvironment, type Environment, type KernelOptions } from '../environment.ts'
import type { CallInput, Envelope } from '../http/inject.ts'
import { createKernel, type Kernel } from '../kernel.ts'
import type { ServiceToken } from '../lifecycle/services.ts'
import { definePack, type Pack } from '../pack.ts'
import type { EmittedEvent } from '../realtime/types.ts'
import { type Extra, RestClient } from './client.ts'
import { type Limit, within } from './limit.ts'
import { SocketClient, type SocketOptions, type WaitOptions } from './socket.ts'
import { watch, witnessedEvents } from './witness.ts'

/** What startTestKernel needs of a node:test context. */
export interface TestContextLike {
  after(fn: () => unknown): void
}

export interface TestKernelOptions extends Partial<Omit<KernelOptions, 'packs'>> {
  readonly packs: readonly Pack[]
  /** Expect schema violations instead of failing the test on them. */
  readonly allowViolations?: boolean
}

export interface RecordedEvent {
  readonly type: string
  readonly payload: unknown
}

export interface TestKernel {
  readonly kernel: Kernel
  readonly home: string
  readonly url: string
  readonly token: string
  /** Calls a declared route over a real socket; types follow the spec. */
  call<R extends AnyRoute>(route: R, ...input: CallInput<R, Extra>): Promise<Envelope<R>>
  /** The untyped client behind `call`, for raw requests. */
  readonly rest: RestClient
  /** Every event in emission order, as its owner emitted it. Grows while the test runs. */
  readonly events: RecordedEvent[]
  /** Resolves with the first event (recorded already or to come) of that declaration, or that fits. Rejects when none came in time. */
  waitFor<E extends EventSpec>(event: E, options?: WaitOptions): Promise<EmittedEvent<Static<E['payload']>>>
  waitFor(fits: (event: EmittedEvent) => boolean, options?: WaitOptions): Promise<EmittedEvent>
  /** Opens a WebSocket; resolves after server_hello. Closed with the test. */
  connect(options?: SocketOptions): Promise<SocketClient>
  /** Stops now; the test's end would do it. */
  stop(): Promise<void>
}

/**
 * Starts a kernel with these packs and nothing else: temporary home, port 0, strict checks (a reply, event or ack that misses its
 * schema, an undeclared error, or what a witness (`useWitness`) finds wrong, fails the test). Everything is closed through `t.after`.
 */
export async function startTestKernel(t: TestContextLike, options: TestKernelOptions): Promise<TestKernel> {
  const { allowViolations, packs, ...given } = options
  const home = given.home ?? (await mkdtemp(join(tmpdir(), 'svc-code-test-')))
  const violations: Error[] = []
  const kernel = await createKernel({
    product: 'svc-code', // as the full server is called
    port: 0,
    strict: true,
    graceMs: 2_000,
    log: { level: 'silent' },
    onViolation: error => violations.push(error),
    ...given,
    home,
    packs
  })
  const recorder = new Recorder(kernel)
  const blame = (fault: Error) => {
    if (violations.length < 10) violations.push(fault)
  }
  if (!allowViolations) kernel.hub.on(undefined, witnessedEvents(kernel, blame))
  const sockets: SocketClient[] = []
  let rest: RestClient | undefined
  let unwatch = () => {}
  const stop = async () => {
    for (const socket of sockets) socket.terminate()
    rest?.close()
    recorder.end()
    await kernel.stop()
    unwatch()
  }
  t.after(async () => {
    await stop()
    if (given.home === undefined) await rm(home, { recursive: true, force: true, maxRetries: 3 })
    if (!allowViolations) assertNone(violations)
  })
  const address = await kernel.start()
  if (!allowViolations) unwatch = watch(address.url, kernel, blame)
  const token = (await readFile(join(home, 'server.token'), 'utf8')).trim()
  const client = new RestClient(address.url, token)
  rest = client
  return {
    kernel,
    home,
    url: address.url,
    token,
    rest: client,
    call: (route, ...input) => client.call(route, ...input),
    events: recorder.events,
    waitFor: (fits: EventSpec | Fits, waiting?: WaitOptions) =>
      recorder.waitFor(typeof fits === 'function' ? fits : event => event.type === fits.type, waiting) as Promise<never>,
    async connect(socketOptions) {
      const socket = await SocketClient.open(address.url, token, socketOptions)
      sockets.push(socket)
      return socket
    },
    stop
  }
}

/**
 * The environment of a kernel for a test of one of its parts: silent log, strict checks. Give a `home` when the part touches the disk;
 * without one it is a directory that cannot exist.
 */
export function testEnvironment(given: Partial<KernelOptions> = {}): Environment {
  return createEnvironment({ product: 'svc-code', home: '/dev/null/home', packs: [], strict: true, log: { level: 'silent' }, ...given })
}

type Fits = (event: EmittedEvent) => boolean

class Recorder {
  readonly events: RecordedEvent[] = []
  readonly #seen: EmittedEvent[] = []
  readonly #waiting = new Map<(event: EmittedEvent) => void, Limit>()

  constructor(kernel: Kernel) {
    kernel.hub.on(undefined, event => {
      this.#seen.push(event)
      this.events.push({ type: event.type, payload: event.payload })
      for (const look of [...this.#waiting.keys()]) look(event)
    })
  }

  waitFor(fits: Fits, { limitMs }: WaitOptions = {}): Promise<EmittedEvent> {
    const seen = this.#seen.find(fits)
    if (seen) return Promise.resolve(seen)
    return new Promise((resolve, reject) => {
      const look = (event: EmittedEvent) => {
        if (!fits(event)) return
        this.#waiting.get(look)?.end()
        this.#waiting.delete(look)
        resolve(event)
      }
      const limit = within(limitMs, 'event that fits', this.events, error => {
        this.#waiting.delete(look)
        reject(error)
      })
      this.#waiting.set(look, limit)
    })
  }

  /** What has not come does not come any more. */
  end(): void {
    for (const limit of this.#waiting.values()) limit.end()
  }
}

/** A pack that provides a partial fake of a service, named after the token. Members that are not given throw when they are used. */
export function stub<T extends object>(token: ServiceToken<T>, fake: Partial<T>): Pack {
  const impl = new Proxy(fake as T, {
    get(target, key, receiver) {
      if (Reflect.has(target, key)) return Reflect.get(target, key, receiver)
      if (typeof key === 'symbol' || key === 'then') return undefined
      throw new Error(`the stub of ${token.id} has no '${key}'`)
    }
  })
  return definePack({ name: token.id, provides: [token], setup: ctx => ctx.provide(token, impl) })
}

/** Each violation once, with its text alone: the stack is that of the kernel. */
function assertNone(violations: readonly unknown[]): void {
  const texts = new Set(violations.map(one => (one instanceof Error ? one.message : String(one))))
  assert.ok(texts.size === 0, `what the server sends must match its declarations and its documents:\n${[...texts].join('\n')}`)
}
