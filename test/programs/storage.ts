/**
 * Child for storage tests. `write <home> <kind>` stores numbered records for ever and prints each number once it is acknowledged;
 * `count <home> <times>` counts a document up; `own <home>` opens the kv database, prints `open`,
 * puts a record and prints `put` (`refused` when the disk did) when it is told `put <key> <n>`, and closes it when it is told anything else.
 */
import { defineStore } from '../../kernel/contract.ts'
import { Type } from '../../kernel/shapes.ts'
import { createStorage } from '../../kernel/storage/index.ts'

const record = Type.Object({ n: Type.Integer() })
const [mode, home, argument] = process.argv.slice(2)
const storage = createStorage({ home: home!, log: { warn: () => undefined } })
const place = { namespace: 'test', dir: 'test' }

if (mode === 'count') {
  const store = storage.open(defineStore({ name: 'counter', kind: 'document', value: record }), place)
  for (let i = 0; i < Number(argument); i++) await store.update('counter', current => ({ n: (current?.n ?? 0) + 1 }))
  await storage.close()
} else if (mode === 'own') {
  await storage.open(defineStore({ name: 'records', value: record }), place).get('none')
  console.log('open')
  process.stdin.on('data', async data => {
    const [word, key, n] = String(data).trim().split(' ')
    if (word === 'put') {
      const put = storage.open(defineStore({ name: 'records', value: record }), place).put(key!, { n: Number(n) })
      console.log(
        await put.then(
          () => 'put',
          () => 'refused'
        )
      )
      return
    }
    await storage.close()
    process.exit(0)
  })
} else {
  const put = writer(argument ?? 'kv')
  // Four at a time, so that group commit has something to group.
  for (let n = 0; ; n += 4) {
    const group = [n, n + 1, n + 2, n + 3]
    await Promise.all(group.map(async each => put(each).then(() => process.stdout.write(`${each}\n`))))
  }
}

function writer(kind: string): (n: number) => Promise<unknown> {
  if (kind === 'log') {
    const store = storage.open(defineStore({ name: 'records', kind: 'log', value: record }), place)
    return n => store.append('all', { n })
  }
  if (kind === 'document') {
    const store = storage.open(defineStore({ name: 'records', kind: 'document', value: record }), place)
    return n => store.put(`d${n % 8}`, { n })
  }
  const store = storage.open(defineStore({ name: 'records', value: record }), place)
  return n => store.put(String(n).padStart(8, '0'), { n })
}
