/** What a call of a pack costs in a process of its own beside the same one in the server's, and beside a message to a bare process and back. */
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadIsolated } from '../../features/cli/isolation/isolated-pack.ts'
import { loadPacks } from '../../features/cli/load-pack.ts'
import { defineRoute, type Pack, Type } from '../../kernel/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'
import { median, type Row } from './table.ts'

const calls = 3_000
const warmUp = 2_000

const text = `import { definePack, defineRoute, defineStore, Type } from 'svc-code/kernel'
const Item = Type.Object({ id: Type.String(), label: Type.String() })
const plain = defineRoute({ method: 'POST', path: '/api/v1/plain', summary: 'Plain', body: Item, data: Item })
const kept = defineRoute({ method: 'POST', path: '/api/v1/kept', summary: 'Kept', body: Item, data: Item })
const store = defineStore({ name: 'items', value: Item })
export default definePack({
  name: 'measured',
  setup(ctx) {
    const items = ctx.store(store)
    ctx.route(plain, ({ body }) => body)
    ctx.route(kept, async ({ body }) => (await items.get(body.id)) ?? body)
  }
})`

const Item = Type.Object({ id: Type.String(), label: Type.String() })
const plain = defineRoute({ method: 'POST', path: '/api/v1/plain', summary: 'Plain', body: Item, data: Item })
const kept = defineRoute({ method: 'POST', path: '/api/v1/kept', summary: 'Kept', body: Item, data: Item })

async function started(pack: Pack) {
  const undo: (() => unknown)[] = []
  const kernel = await startTestKernel({ after: fn => undo.push(fn) }, { packs: [pack], strict: false })
  const timed = async (route: typeof plain) => {
    const began = performance.now()
    await kernel.call(route, { body: { id: 'a', label: 'one two three' } })
    return performance.now() - began
  }
  return { timed, stop: async () => void (await Promise.all(undo.map(fn => fn()))) }
}

/** A process that writes back what it reads, and how long that takes: what the machine takes for two changes between processes. */
function startEcho() {
  const child = spawn(process.execPath, ['-e', 'process.stdin.on("data", data => require("fs").writeSync(1, data))'], {
    stdio: ['pipe', 'pipe', 'inherit']
  })
  const message = Buffer.alloc(300)
  const timed = () => {
    const began = performance.now()
    return new Promise<number>(done => {
      child.stdout.once('data', () => done(performance.now() - began))
      child.stdin.write(message)
    })
  }
  return { timed, stop: () => void child.kill() }
}

export async function isolation(): Promise<Row[]> {
  const dir = await mkdtemp(join(tmpdir(), 'svc-code-bench-'))
  const file = join(dir, 'pack.mjs')
  await writeFile(file, text)
  const { packs } = await loadPacks([{ spec: file, from: dir }], [])
  const began = performance.now()
  const [apart] = await loadIsolated({ spec: file, from: dir }, { memory_mb: 512, hang_s: 5, restarts: 10 })
  const start = performance.now() - began
  const here = await started(packs[0] as Pack)
  const there = await started(apart as Pack)
  const echo = startEcho()
  try {
    const rows: Row[] = []
    for (const [what, route] of [
      ['a call', plain],
      ['a call that reads a store', kept]
    ] as const) {
      const inside: number[] = []
      const outside: number[] = []
      const bare: number[] = []
      // Side by side, so that what else the machine does is in both.
      for (let n = 0; n < warmUp + calls; n++) {
        const [one, other, empty] = [await here.timed(route), await there.timed(route), await echo.timed()]
        if (n < warmUp) continue
        inside.push(one)
        outside.push(other)
        bare.push(empty)
      }
      for (const [name, at] of [
        ['p50', 0.5],
        ['p99', 0.99]
      ] as const) {
        const [floor, ours] = [quantile(inside, at), quantile(outside, at)]
        rows.push({
          what: `${what} in a process of its own, ${name}`,
          ours,
          floor,
          unit: 'ms',
          budget: '<= floor + 1',
          holds: ours - floor <= 1
        })
        rows.push({ what: `beside it a message to a bare process and back, ${name}`, ours: quantile(bare, at), unit: 'ms', budget: '' })
      }
      rows.push({
        what: `${what}: the difference`,
        ours: median(outside.map((ms, at) => ms - (inside[at] ?? 0))),
        unit: 'ms',
        budget: '< 1'
      })
    }
    return [...rows, { what: 'start of such a process', ours: start, unit: 'ms', budget: '' }]
  } finally {
    echo.stop()
    await Promise.all([here.stop(), there.stop()])
    await rm(dir, { recursive: true, force: true })
  }
}

function quantile(values: readonly number[], at: number): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length * at)] ?? 0
}
