/** Child process of the storm: a server that patches its own configuration and changes its providers, and says what was acknowledged. */
import { patchConfig } from '../../features/config/index.ts'
import config from '../../features/config/pack.ts'
import llm from '../../features/llm/pack.ts'
import { createProvider, deleteProvider, replaceProvider, setDefaultModel } from '../../features/providers/index.ts'
import providers from '../../features/providers/pack.ts'
import { startTestKernel } from '../../kernel/testing.ts'

/** `begun`: from now on nobody knows until `done`. */
export interface StormNote {
  readonly what: 'flag' | 'created' | 'renamed' | 'deleted'
  readonly name: string
  readonly state: 'begun' | 'done'
}

const [home, prefix] = process.argv.slice(2) as [string, string]
const models = ['a', 'b', 'c'].map(model => ({ model, max_context_size: 1000 }))
const form = { type: 'compat_chat' as const, models, api_key: 'k'.repeat(500) }
const { call } = await startTestKernel({ after: () => undefined }, { packs: [config, llm, providers], home })

async function note(what: StormNote['what'], name: string, work: () => Promise<{ readonly code: number; readonly msg: string }>) {
  process.send?.({ what, name, state: 'begun' } satisfies StormNote)
  const { code, msg } = await work()
  if (code !== 0) throw new Error(`${what} ${name}: ${msg}`)
  process.send?.({ what, name, state: 'done' } satisfies StormNote)
}

for (let n = 1; ; n++) {
  const id = `${prefix}-${n}`
  await Promise.all([
    note('flag', id, () => call(patchConfig, { body: { experimental: { [id]: true } } })),
    note('created', id, () => call(createProvider, { body: { id, ...form } }))
  ])
  await call(setDefaultModel, { params: { model_id: `${id}/b` } })
  const params = { provider_id: id }
  if (n % 3 === 1) await note('deleted', id, () => call(deleteProvider, { params }))
  else if (n % 3 === 2) await note('renamed', id, () => call(replaceProvider, { params, body: { ...form, new_id: `${id}-new` } }))
}
