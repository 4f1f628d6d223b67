/**
 * A process of its own whose pack runs background jobs in batches of a thousand: prints by how many KiB the heap grew. Arguments: how many
 * batches.
 */
import { setImmediate as tick } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { definePack, type PackContext } from '../../kernel/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const undos: (() => unknown)[] = []
const held: PackContext[] = []
const pack = definePack({ name: 'busy', setup: ctx => void held.push(ctx as PackContext) })
await startTestKernel({ after: undo => void undos.push(undo) }, { packs: [pack] })
const [ctx] = held

async function run(batches: number): Promise<number> {
  for (let batch = 0; batch < batches; batch++) {
    for (let job = 0; job < 1_000; job++) ctx?.background(async () => undefined)
    await tick()
  }
  collect()
  return process.memoryUsage().heapUsed
}

const before = await run(2)
console.log(Math.round(((await run(Number(process.argv[2]))) - before) / 1024))
for (const undo of undos) await undo()
