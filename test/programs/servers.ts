/**
 * Full servers in one process, each with a home of its own, for tests that kill many of them. Arguments: by how many ms their clock is ahead,
 * then their homes. Prints `{ url, token }` per server in this order, and later a line for each reply or event that misses its declaration.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { createKernel } from '../../kernel/kernel.ts'

const [, , ahead, ...homes] = process.argv
const now = () => new Date(Date.now() + Number(ahead))
const packs = await loadDefaultPacks()
await Promise.all(homes.map(start)).then(servers => servers.forEach(server => void console.log(JSON.stringify(server))))

async function start(home: string) {
  const kernel = await createKernel({
    product: 'svc-code',
    home,
    packs,
    port: 0,
    setupTimeoutMs: 300_000, // they all start at once
    now,
    strict: true,
    log: { level: 'warn' },
    onViolation: error => console.log(error.message),
    config: { agent: { retry_base_ms: 1 }, compaction: { retry_base_ms: 1 }, subagents: { swarm_spacing_ms: 1 } }
  })
  const { url } = await kernel.start()
  return { url, token: (await readFile(join(home, 'server.token'), 'utf8')).trim() }
}
