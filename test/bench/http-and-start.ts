/** Start-up time, alone and with many packs of others, idle memory, and REST reads against bare polka. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import autocannon from 'autocannon'
import { startFloor, startServer } from './processes.ts'
import { median, type Row, repeat, spread } from './table.ts'

export async function startUp(runs: number): Promise<Row[]> {
  const ready: number[] = []
  const empty: number[] = []
  const memory: number[] = []
  const crowded: number[] = []
  const place = await mkdtemp(join(tmpdir(), 'svc-code-bench-'))
  const packs = await manyPacks(place)
  for (let n = 0; n <= runs; n++) {
    const server = await startServer({ bench: false })
    await new Promise(resolve => setTimeout(resolve, 500)) // idle memory is what is left when start-up work has ended
    if (n > 0) {
      ready.push(server.ready_ms)
      empty.push(await emptyNode())
      memory.push(await server.rss())
    }
    await server.stop()
    const full = await startServer({ bench: false, packs })
    if (n > 0) crowded.push(full.ready_ms - server.ready_ms)
    await full.stop()
  }
  await rm(place, { recursive: true })
  return [
    {
      what: 'ready, all packs (floor: node -e 0)',
      ours: median(ready),
      floor: median(empty),
      spread: spread(ready),
      unit: 'ms',
      budget: '<= 3.00x',
      holds: median(ready) <= 3 * median(empty)
    },
    { what: 'idle memory (RSS)', ours: median(memory), spread: spread(memory), unit: 'MB', budget: '<= 70', holds: median(memory) <= 70 },
    {
      what: '100 packs more, each with a file and a route',
      ours: median(crowded),
      spread: spread(crowded),
      unit: 'ms',
      budget: '<= 150',
      holds: median(crowded) <= 150
    }
  ]
}

/** Writes a hundred packs; resolves to their files. */
function manyPacks(dir: string): Promise<string[]> {
  return Promise.all(
    Array.from({ length: 100 }, async (_, n) => {
      const file = join(dir, `crowd-${n}.mjs`)
      await writeFile(file, onePack(n))
      return file
    })
  )
}

const onePack = (n: number) => `import { definePack, defineRoute, Type } from 'svc-code/kernel'
const hello = defineRoute({ method: 'GET', path: '/api/v1/crowd-${n}', summary: 'Say a number', data: Type.Object({ n: Type.Integer() }) })
export default definePack({ name: 'crowd-${n}', setup: ctx => void ctx.route(hello, () => ({ n: ${n} })) })
`

/** Milliseconds from the start to the end of a node that does nothing. */
async function emptyNode(): Promise<number> {
  const began = performance.now()
  await once(spawn(process.execPath, ['-e', '0']), 'exit')
  return performance.now() - began
}

export async function restReads(runs: number): Promise<Row[]> {
  const server = await startServer()
  const floor = await startFloor()
  const session = await server.session()
  const rows: Row[] = []
  for (const path of [`/api/v1/sessions/${session}`, '/api/v1/workspaces']) {
    const size = (await server.rest.raw('GET', path)).body.length
    await fetch(`${floor.url}/set/${size - 70}`)
    await server.loop()
    const ours = await repeat(runs, () => rate(server.url + path, { authorization: `Bearer ${server.token}` }))
    const bare = await repeat(runs, () => rate(`${floor.url}/read/1`, { authorization: `Bearer ${server.token}` }))
    const ratio = median(ours) / median(bare)
    const what = `GET ${path.replace(session, '{id}').replace('/api/v1', '')}`
    rows.push({
      what,
      ours: median(ours),
      floor: median(bare),
      spread: spread(ours),
      unit: 'req/s',
      budget: '>= 0.60x',
      holds: ratio >= 0.6
    })
  }
  const loop = await server.loop()
  rows.push({ what: 'loop delay during reads', ours: loop, unit: 'ms', budget: '< 20', holds: loop < 20 })
  await server.stop()
  await floor.stop()
  return rows
}

async function rate(url: string, headers: Record<string, string>): Promise<number> {
  const result = await autocannon({ url, headers, connections: 20, duration: 2 })
  if (result.non2xx > 0) throw new Error(`${url} answered ${result.non2xx} failures`)
  return result.requests.average
}
