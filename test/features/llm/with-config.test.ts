/** The sections work in the real configuration file. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Config } from '../../../features/config/index.ts'
import config from '../../../features/config/pack.ts'
import { Llm } from '../../../features/llm/index.ts'
import llm from '../../../features/llm/pack.ts'
import llmChat from '../../../features/llm-chat/pack.ts'
import { definePack } from '../../../kernel/index.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'

const file = `
default_model = "acme/big"

[providers.acme]
type = "compat_chat"
base_url = "https://api.example.com/v1"
api_key = "sk-file-secret"

[models."acme/big"]
provider = "acme"
model = "big"
max_context_size = 32000
capabilities = ["thinking"]

[thinking]
effort = "high"
`

test('a model of the configuration file resolves, follows changes of the file, and its key stays inside', async t => {
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), file)
  let found: { llm: Llm; config: Config } | undefined
  const user = definePack({
    name: 'llm-user',
    needs: { llm: Llm, config: Config },
    setup(_ctx, services) {
      found = services
    }
  })
  const { rest } = await startTestKernel(t, { packs: [config, llm, llmChat, user], home })
  assert.ok(found)

  const model = found.llm.resolve()
  assert.deepEqual([model.name, model.api_key, found.llm.effort(model)], ['big', 'sk-file-secret', 'high'])
  const shown = await rest.json('GET', '/api/v1/config')
  assert.equal(shown.code, 0)
  assert.ok(!JSON.stringify(shown).includes('sk-file-secret'))

  await found.config.patch({ models: { 'acme/big': { max_context_size: 64000 } }, providers: { acme: { api_key: 'sk-new' } } })

  assert.deepEqual([found.llm.resolve().max_context_size, found.llm.resolve().api_key], [64000, 'sk-new'])
})
