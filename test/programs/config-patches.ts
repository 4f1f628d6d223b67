/** Child process of the durability tests: counts up one key of the configuration and says each number that was acknowledged. */
import { ConfigFile } from '../../features/config/file.ts'
import { Settings } from '../../features/config/settings.ts'

const [home, key, rounds] = process.argv.slice(2) as [string, string, string]
const log = { warn: () => undefined, error: () => undefined }
const settings = new Settings({ file: new ConfigFile(home), env: {}, log: log as never, sections: () => [] })
await settings.ready()
process.send?.(0)
for (let round = 1; round <= Number(rounds); round++) {
  await settings.patch({ counters: { [key]: round }, filler: 'x'.repeat(round % 2 ? 20_000 : 10) })
  process.send?.(round)
}
process.disconnect?.()
