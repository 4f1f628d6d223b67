/**
 * Full servers in one process, each with a home of its own, for tests that kill many of them. Arguments: by how many ms their clock is ahead,
 * then their homes. Prints `{ url, token }` per server in this order, and later a line for each reply or event that misses its declaration.
 */

/** The bundle that runs everywhere: it is read in a fifth of the time of its sources. */
const door = async (name: string) => await import(new URL(`../../bundle/${name}.mjs`, import.meta.url).href)
const { startTestKernel } = (await door('kernel-testing')) as typeof import('../../testing/index.ts')
const { loadDefaultPacks } = (await door('packs')) as typeof import('../../features/default-packs.ts')

const [, , ahead, ...homes] = process.argv
const packs = await loadDefaultPacks()
await Promise.all(homes.map(start)).then(servers => servers.forEach(server => void console.log(JSON.stringify(server))))

async function start(home: string) {
  const ends = { after: () => undefined } // it is killed
  const { url, token } = await startTestKernel(ends, {
    home,
    packs,
    setupTimeoutMs: 300_000, // they all start at once
    now: () => new Date(Date.now() + Number(ahead)),
    log: { level: 'warn' },
    onViolation: error => console.log(error.message),
    config: { agent: { retry_base_ms: 1 }, compaction: { retry_base_ms: 1 }, subagents: { swarm_spacing_ms: 1 } }
  })
  return { url, token }
}
