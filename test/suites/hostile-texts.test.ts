/** Texts from outside (of models, commands, files, upstreams) that would make a search for a pattern try every end from every begin. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { IgnoreRules } from '../../features/file-search/ignore-rules.ts'
import { asData, fromModel } from '../../features/history/as-data.ts'
import { Cleaner } from '../../features/tools-shell/output.ts'
import { redactLine, redactText } from '../../kernel/index.ts'
import { freshDir } from '../helpers/temp.ts'

const chars = 100_000
const times = (piece: string) => piece.repeat(chars / piece.length)

const readers: Readonly<Record<string, { readonly read: (text: string) => unknown; readonly texts: readonly string[] }>> = {
  'a result for the model': {
    read: text => fromModel(asData(text)),
    texts: [
      `<${times(' ')}`,
      times('< '),
      `<${times('/ ')}`,
      times('&amp;'),
      `&${times('amp;')}`,
      `<system${times(' ')}`,
      `<system ${times('a')}`,
      times('<system-reminder '),
      times('&lt;system a='),
      times('&lt;system-reminder ')
    ]
  },
  'output of a command': { read: text => new Cleaner().push(`${text}\n`), texts: [`${times('\r')}x`, times('\x1b]'), times('x\b')] },
  'a line of the log': { read: redactLine, texts: [`${times('x-')}sn`, `r${times('-a')}`, times('token='), times('"token":[')] },
  'an error text': { read: redactText, texts: [`${times('x-')}sn`, times('sk-'), times('a://'), times('Bearer ')] }
}
for (const [name, { read, texts }] of Object.entries(readers)) {
  test(`${name} costs time by its length, whatever it holds`, () => {
    for (const text of texts) {
      const before = process.cpuUsage().user
      read(text)
      const ms = (process.cpuUsage().user - before) / 1000
      assert.ok(ms < 1000, `${JSON.stringify(text.slice(0, 12))} takes ${ms} ms`)
    }
  })
}

test('an ignore file costs time by its length, whatever it holds', async () => {
  const dir = await freshDir()
  await writeFile(join(dir, '.gitignore'), `${times('\n')}#`)
  const before = process.cpuUsage().user
  await new IgnoreRules().in(dir)
  assert.ok(process.cpuUsage().user - before < 1_000_000)
})
