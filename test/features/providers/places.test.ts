/** The order of the lists: that of the file, which renames and replaces do not change. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listModels, listProviders, replaceProvider } from '../../../features/providers/index.ts'
import { quiet, start } from './scene.ts'

test('a provider that is renamed keeps its place and its comments although every field becomes another one', async t => {
  const toml = `${quiet}
[providers.a]
type = "svc"

# about b
[providers.b]
type = "svc"
base_url = "https://b.example"

[providers.c]
type = "svc"

[models."a/m"]
provider = "a"
model = "m"
max_context_size = 1

[models."b/m"]
provider = "b"
model = "m"
max_context_size = 1

[models."c/m"]
provider = "c"
model = "m"
max_context_size = 1
`
  const one = await start(t, { toml })
  const body = { new_id: 'n', type: 'compat_chat' as const, models: [{ model: 'other', max_context_size: 2 }] }
  await one.call(replaceProvider, { params: { provider_id: 'b' }, body })

  const two = await start(t, { home: one.home })
  for (const { call } of [one, two]) {
    const { items } = (await call(listProviders)).data
    assert.deepEqual(
      items.map(({ id }) => id),
      ['a', 'n', 'c']
    )
  }
  const aliases = async ({ call }: typeof one) => (await call(listModels)).data.items.map(item => item.model)
  assert.deepEqual(await aliases(one), await aliases(two))
  assert.match(await one.toml(), /\n# about b\n\[providers\.n\]\ntype = "compat_chat"\n\n\[providers\.c\]/)
})
