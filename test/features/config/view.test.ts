/** What clients see after many changes is made of parts that were made before: it must be what a new server shows. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { configChanged } from '../../../features/config/index.ts'
import config from '../../../features/config/pack.ts'
import llm from '../../../features/llm/pack.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'

const provider = (id: string, more = '') => `[providers.${id}]\ntype = "svc"\napi_key = "LEAK"\n${more}\n`
const a = provider('a', 'base_url = "https://user:LEAK@a"')
const b = provider('b')
const model = (id: string, size: number) => `[models."${id}"]\nprovider = "a"\nmodel = "m"\nmax_context_size = ${size}\n\n`

const files = [
  a + b,
  `telemetry = true\n${a}${b}`,
  a + provider('new') + b,
  provider('1') + b + a,
  b.replace('svc', 'compat_chat') + a,
  a + model('a/m', 1) + model('__proto__', 2) + model('10', 3),
  a + model('a/m', 5) + model('10', 3) + model('9', 4),
  `${model('a/m', 5)}[providers]\n`,
  model('a/m', 5).replace('5', '"five"') + b,
  '[unknown]\nwhen = 1979-05-27\nbig = 9007199254740993\nlist = [{ token = "LEAK" }]\n[experimental]\nflag = true\n',
  ''
]

test('the configuration looks the same after changes as in a new server, in replies and in events', async t => {
  const home = await freshDir()
  const path = join(home, 'config.toml')
  const packs = [config, llm]
  const old = await startTestKernel(t, { packs, home })
  const shown = async ({ rest }: typeof old) => (await rest.raw('GET', '/api/v1/config')).body.toString().replace(/"request_id":"\w+"/, '')
  for (const file of files) {
    await writeFile(path, file)
    const now = await shown(old)
    const fresh = await startTestKernel(t, { packs, home })

    assert.equal(now, await shown(fresh), file)
    assert.doesNotMatch(now, /LEAK/)
    const event = old.events.findLast(({ type }) => type === configChanged.type)
    assert.equal(JSON.stringify((event!.payload as { config: unknown }).config), /"data":(.*),$/.exec(now.slice(0, -1))?.[1])
    await fresh.stop()
  }
})
