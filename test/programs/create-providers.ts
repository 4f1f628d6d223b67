/** Child process of the durability test: creates providers over HTTP, one after the other, and says each one that was acknowledged. */
import { createProvider } from '../../features/providers/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'
import { body, packs } from '../features/providers/scene.ts'

const [home, name] = process.argv.slice(2) as [string, string]
const models = ['a', 'b', 'c'].map(model => ({ model, max_context_size: 1000 }))
const { call } = await startTestKernel({ after: () => undefined }, { packs, home })
process.send?.(0)
for (let n = 1; ; n++) {
  const { code, msg } = await call(createProvider, { body: body(`${name}${n}`, { models, api_key: 'k'.repeat(2000) }) })
  if (code !== 0) throw new Error(msg)
  process.send?.(n)
}
