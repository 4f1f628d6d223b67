/** What comes and goes again leaves the file as it was: no blank lines pile up. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { copy, type Table } from '../../../features/config/tables.ts'
import { readToml } from '../../../features/config/toml.ts'
import { editToml } from '../../../features/config/toml-edit.ts'

/** Changes a copy of what the text says; answers the new text. */
async function edited(text: string, change: (table: Record<string, Table>) => void): Promise<string> {
  const table = readToml(text)
  const next = copy(table) as Record<string, Table>
  change(next)
  return (await editToml({ text, table }, next)).text
}

const files = {
  'tables in the middle and at the end':
    '# mine\ntelemetry = true\n\n[providers.keep]\ntype = "svc"\n\n# models\n[models.keep]\nprovider = "keep"\n\n[thinking]\nenabled = true\n',
  'line breaks of another kind': '[providers.keep]\r\ntype = "svc"\r\n\r\n[thinking]\r\nenabled = true\r\n',
  'no blank lines at all': '[providers.keep]\ntype = "svc"\n[models.keep]\nprovider = "keep"\n[thinking]\nenabled = true\n'
}

for (const [what, text] of Object.entries(files)) {
  test(`providers that come and go again and again: ${what}`, async () => {
    const round = async (start: string) => {
      const more = await edited(start, table => {
        table.providers = { ...table.providers, x: { type: 'svc', env: { A: '1' } } }
        table.models = { ...table.models, 'x/a': { provider: 'x' }, 'x/b': { provider: 'x' } }
      })
      return edited(more, table => {
        delete table.providers!.x
        for (const alias of ['x/a', 'x/b']) delete table.models![alias]
        if (Object.keys(table.models!).length === 0) delete table.models
      })
    }
    const once = await round(text)
    let often = once
    for (let times = 0; times < 5; times++) often = await round(often)

    assert.equal(often, once)
    assert.ok(!/\n\s*\n\s*\n/.test(once), once)
    assert.deepEqual(readToml(once), readToml(text))
  })
}

test('a removed table takes one blank line with it, not the one between its neighbours, nor comments', async () => {
  const text = '[a]\nx = 1\n\n[b]\nx = 2\n\n\n# about c\n[c]\nx = 3\n'
  assert.equal(await edited(text, table => delete table.b), '[a]\nx = 1\n\n# about c\n[c]\nx = 3\n')
  assert.equal(await edited(text, table => delete table.a), '[b]\nx = 2\n\n\n# about c\n[c]\nx = 3\n')
  assert.equal(await edited('[a]\nx = 1\n[b]\nx = 2\n\n[c]\nx = 3\n', table => delete table.b), '[a]\nx = 1\n\n[c]\nx = 3\n')
})
