/** The suite that every pack must pass: it comes and goes without a trace, its defaults are valid, its README tells what it opens. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { checker, type Pack } from '../../kernel/index.ts'
import type { Kernel } from '../../kernel/kernel.ts'
import { deploymentConfig } from '../../kernel/lifecycle/context.ts'
import { assertNothingMore, openResources, type RestClient, startTestKernel } from '../../kernel/testing.ts'
import { type Declared, recorded } from '../helpers/declared.ts'
import { missingIn } from '../helpers/pack-facts.ts'

export interface HygieneOptions {
  /** Packs that make up a whole server, without the pack under test. Those it needs must be among them. */
  readonly others: readonly Pack[]
  /** The pack's README; undefined for a pack in one file, which tells the same in its opening comment. */
  readonly readme?: URL | undefined
}

/** Registers the tests of one pack. */
export function packHygiene(pack: Pack, { others, readme }: HygieneOptions): void {
  const { name } = pack

  test(`${name}: unloading and loading again leaves the server as it was`, async t => {
    const { packs, declared } = recorded([pack])
    const { kernel, rest } = await startTestKernel(t, { packs: [...others, ...packs] })
    assertActive(kernel, name)
    await readAll(rest, declared)
    const before = stateOf(kernel)
    const open = await openResources()

    await kernel.unload(name)
    const without = kernel.inspect()
    await kernel.load(name)

    assertActive(kernel, name)
    assert.deepEqual(stateOf(kernel), before)
    assert.ok(without.routes.length <= before.routes.length)
    await assertNothingMore(open)
  })

  test(`${name}: a server that had it for a while is as if it never had`, async t => {
    const { packs, declared } = recorded([pack])
    const { kernel, rest } = await startTestKernel(t, { packs: others })
    await rest.raw('GET', '/api/v1/nothing') // the client keeps its connection: it must not count as left behind
    const before = stateOf(kernel)
    const open = await openResources()

    for (const one of packs) await kernel.load(one)
    assertActive(kernel, name)
    await readAll(rest, declared)
    await kernel.unload(name)

    assert.deepEqual(stateOf(kernel), before)
    await assertNothingMore(open)
  })

  test(`${name}: it is active alone with what it needs, and waits without`, async t => {
    const { kernel } = await startTestKernel(t, { packs: [...needed(pack, others), pack] })
    assertActive(kernel, name)
    if (Object.keys(pack.needs).some(key => !['kernel-info', 'pack-control', 'relays'].includes(pack.needs[key]?.id ?? ''))) {
      const alone = await startTestKernel(t, { packs: [pack] })
      const feature = alone.kernel.features()[0]
      assert.equal(feature?.state, 'Pending')
      assert.ok((feature?.meta.waiting_for ?? []).length > 0)
    }
  })

  test(`${name}: it leaves no timer, watcher, socket or child process behind when the server stops`, async t => {
    const empty = await startTestKernel(t, { packs: [] })
    await empty.stop()
    const open = await openResources()
    const { packs, declared } = recorded([pack])
    const { stop, kernel, rest } = await startTestKernel(t, { packs: [...others, ...packs] })
    assertActive(kernel, name)
    await readAll(rest, declared)

    await stop()

    await assertNothingMore(open)
  })

  test(`${name}: the defaults of its deployment options are valid`, () => {
    assert.deepEqual(deploymentConfig(pack, undefined), deploymentConfig(pack, {}))
    for (const [key, schema] of Object.entries(pack.config?.properties ?? {})) {
      if (schema.default !== undefined) assert.ok(checker(schema).Check(schema.default), `the default of ${key} misses its own schema`)
    }
  })

  if (readme) {
    test(`${name}: it says in one line what it does, and its README names every route, event, frame and option`, async t => {
      const { packs, declared } = recorded([pack])
      const { kernel } = await startTestKernel(t, { packs: [...others, ...packs] })
      assertActive(kernel, name)
      assert.match(pack.description ?? '', /^\S.{9,110}$/)
      assert.deepEqual(missingIn(await readFile(readme, 'utf8'), pack, declared), [])
    })
  }
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

/** Uses the pack a little, so that what it opens at first use is open: every route that can be read without parameters. */
async function readAll(rest: RestClient, { routes }: Declared): Promise<void> {
  for (const { method, path } of routes) {
    if (method === 'GET' && !path.includes('{')) assert.equal((await rest.raw('GET', path)).status, 200, path)
  }
}

function assertActive(kernel: Kernel, name: string): void {
  const feature = kernel.features().find(one => one.name === name)
  assert.deepEqual(feature && { state: feature.state, error: feature.meta.error }, { state: 'Active', error: undefined })
}

function stateOf(kernel: Kernel) {
  return { ...kernel.inspect(), features: kernel.features() }
}
