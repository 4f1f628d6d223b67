/** What every pack must pass, whoever wrote it: it comes and goes without a trace, keeps within bounds and says what it declared. */
import assert from 'node:assert/strict'
import type { AnyRoute } from '../contract.ts'
import type { Kernel } from '../kernel.ts'
import type { Pack } from '../pack.ts'
import { checker } from '../schema.ts'
import type { RestClient } from './client.ts'
import { assertLeavesNothing, assertNothingMore, openResources } from './leaks.ts'
import { startTestKernel, type TestKernel } from './test-kernel.ts'

export interface PackCheckOptions {
  /** Packs that make up the rest of the server; those that the pack needs must be among them. */
  readonly others: readonly Pack[]
  /** Deployment options by pack name. */
  readonly config?: Readonly<Record<string, unknown>>
  /** How long a setup and an answer may take, ms; default 1,000. */
  readonly limitMs?: number
  /** How often it is swapped while it is asked; default 20. */
  readonly reloads?: number
}

/** One check; `run` rejects with what is wrong. */
export interface PackCheck {
  readonly name: string
  run(): Promise<void>
}

const answerBytes = 8 * 1_048_576

/**
 * The checks of a pack, to be run one after the other: leaks, late calls, bounds, reloads under requests, neighbours that go, and, because the
 * kernel is strict here, the schema of every answer and event. Routes that can be read without parameters are read.
 */
export function packChecks(pack: Pack, { others, config = {}, limitMs = 1_000, reloads = 20 }: PackCheckOptions): PackCheck[] {
  const { name } = pack
  const check = (title: string, use: (server: Server) => Promise<void>, packs: readonly Pack[] = others): PackCheck => ({
    name: title,
    run: () => withServer(pack, packs, config, use)
  })
  return [
    check('unloading leaves no route, service, timer, watcher, socket or child process behind', async server => {
      await server.kernel.load(server.pack)
      assertActive(server.kernel, name)
      await server.readAll()
      await server.kernel.unload(name) // what the process opens once and keeps is open now
      const before = server.kernel.inspect()
      const open = await openResources()
      await server.kernel.load(name)
      await server.readAll()
      await server.kernel.unload(name)
      assert.deepEqual(server.kernel.inspect(), before)
      await assertNothingMore(open)
    }),
    {
      name: 'a server that stops leaves nothing of it behind',
      run: () =>
        assertLeavesNothing(() =>
          withServer(pack, others, config, async server => {
            await server.kernel.load(server.pack)
            await server.readAll()
          })
        )
    },
    check(`setup and answers stay below ${limitMs} ms and ${answerBytes / 1_048_576} MiB`, async server => {
      const began = performance.now()
      await server.kernel.load(server.pack)
      assertActive(server.kernel, name)
      const took = performance.now() - began
      assert.ok(took < limitMs, `setup took ${Math.round(took)} ms`)
      for (const { path, ms, bytes } of await server.readAll()) {
        assert.ok(ms < limitMs, `GET ${path} took ${Math.round(ms)} ms`)
        assert.ok(bytes <= answerBytes, `GET ${path} answered ${bytes} bytes`)
      }
    }),
    check(`${reloads} reloads under requests: nobody gets an internal error, nothing is called late`, async server => {
      await server.kernel.load(server.pack)
      assertActive(server.kernel, name)
      let running = true
      const asked = (async () => {
        while (running) {
          await server.readAll([200, 404])
          await new Promise(resolve => setImmediate(resolve)) // a pack without such a route is asked nothing
        }
      })()
      try {
        for (let round = 0; round < reloads; round++) await server.kernel.reload(name)
      } finally {
        running = false
        await asked
      }
      assertActive(server.kernel, name)
      assertNoFaults(server.kernel, name)
    }),
    check('a neighbour that goes makes it wait, or costs it nothing; it is back with the neighbour', async server => {
      await server.kernel.load(server.pack)
      const neighbours = others.filter(other => [...Object.values(pack.needs), ...Object.values(pack.optional)].some(uses(other)))
      for (const other of neighbours) {
        await server.kernel.unload(other.name)
        const state = server.kernel.features().find(one => one.name === name)?.state
        const waits = needed(pack, others).includes(other)
        assert.ok(state === (waits ? 'Pending' : 'Active'), `without ${other.name} it is ${state}`)
        if (!waits) await server.readAll()
        await server.kernel.load(other.name)
        assertActive(server.kernel, name)
      }
      assertNoFaults(server.kernel, name)
    }),
    check(
      'it is active with nothing but what it needs',
      async server => {
        await server.kernel.load(server.pack)
        assertActive(server.kernel, name)
        await server.readAll()
      },
      needed(pack, others)
    ),
    {
      name: 'the defaults of its options fit their schema',
      async run() {
        for (const [key, schema] of Object.entries(pack.config?.properties ?? {}))
          if (schema.default !== undefined) assert.ok(checker(schema).Check(schema.default), `the default of ${key} misses its own schema`)
      }
    }
  ]
}

const uses =
  (other: Pack) =>
  ({ id }: { readonly id: string }) =>
    other.provides.some(provided => provided.id === id)

interface Read {
  readonly path: string
  readonly ms: number
  readonly bytes: number
}

interface Server {
  readonly kernel: Kernel
  /** The pack under test; its routes are written down. */
  readonly pack: Pack
  /** Reads every route that takes no parameters. */
  readAll(statuses?: readonly number[]): Promise<Read[]>
}

/** Runs with a strict server of its own; rejects as well for answers that miss their schema, and for rejections nobody handled. */
async function withServer(
  pack: Pack,
  others: readonly Pack[],
  config: Readonly<Record<string, unknown>>,
  use: (server: Server) => Promise<void>
): Promise<void> {
  const ends: (() => unknown)[] = []
  const forgotten: unknown[] = []
  const collect = (reason: unknown) => forgotten.push(reason)
  process.on('unhandledRejection', collect)
  try {
    const server: TestKernel = await startTestKernel({ after: end => ends.push(end) }, { packs: others, config })
    const routes = new Map<string, AnyRoute>()
    const watched: Pack = {
      ...pack,
      setup: (context, services) =>
        pack.setup(
          {
            ...context,
            route(spec: AnyRoute, handler: never) {
              if (spec.method === 'GET' && !spec.path.includes('{') && !spec.fallback) routes.set(spec.path, spec)
              return context.route(spec, handler)
            }
          } as typeof context,
          services
        )
    }
    await server.rest.raw('GET', '/api/v1/nothing') // the client keeps its connection: it must not count as left behind
    await use({ kernel: server.kernel, pack: watched, readAll: statuses => readAll(server.rest, [...routes.values()], statuses) })
  } finally {
    let failure: unknown
    for (const end of ends)
      await Promise.resolve(end()).catch((error: unknown) => {
        failure ??= error
      })
    process.off('unhandledRejection', collect)
    if (failure !== undefined) forgotten.push(failure)
  }
  if (forgotten.length > 0) throw forgotten[0]
}

async function readAll(rest: RestClient, routes: readonly AnyRoute[], statuses: readonly number[] = [200]): Promise<Read[]> {
  const reads: Read[] = []
  for (const { path } of routes) {
    const began = performance.now()
    const { status, body } = await rest.raw('GET', path)
    assert.ok(statuses.includes(status), `GET ${path} answered ${status}: ${body.toString('utf8', 0, 300)}`)
    reads.push({ path, ms: performance.now() - began, bytes: body.length })
  }
  return reads
}

/** The packs that provide what the pack needs, and what those need. */
function needed(pack: Pack, others: readonly Pack[]): Pack[] {
  const wanted = new Set<Pack>()
  const visit = (one: Pack) => {
    for (const token of Object.values(one.needs)) {
      const provider = others.find(other => other.provides.some(provided => provided.id === token.id))
      if (!provider || wanted.has(provider)) continue
      wanted.add(provider)
      visit(provider)
    }
  }
  visit(pack)
  return others.filter(other => wanted.has(other))
}

function assertActive(kernel: Kernel, name: string): void {
  const feature = kernel.features().find(one => one.name === name)
  const said = feature?.meta.error ?? (feature?.meta.waiting_for ? `waits for ${feature.meta.waiting_for.join(', ')}` : '')
  assert.ok(feature?.state === 'Active', `${name} is ${feature?.state ?? 'not there'}: ${said}`)
}

function assertNoFaults(kernel: Kernel, name: string): void {
  const faults = kernel.features().find(one => one.name === name)?.meta.faults
  assert.ok(faults === undefined, `${faults?.count} faults, last: ${faults?.last}`)
}
