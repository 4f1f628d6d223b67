/** What a bind beyond loopback takes away, and what a stopped server leaves behind. */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import instances from '../../features/instances/pack.ts'
import meta from '../../features/meta/pack.ts'
import { definePack, KernelInfo } from '../../kernel/index.ts'
import { createKernel } from '../../kernel/kernel.ts'
import { startTestKernel } from '../../kernel/testing.ts'
import { freshDir } from '../helpers/temp.ts'

for (const [host, expected] of Object.entries({ '127.0.0.1': true, '0.0.0.0': false })) {
  test(`debug routes and the shutdown route ${expected ? 'may exist' : 'are absent'} on ${host}`, async t => {
    let debug: boolean | undefined
    const asks = definePack({
      name: 'asks',
      needs: { kernel: KernelInfo },
      setup(_ctx, { kernel }) {
        debug = kernel.debug_endpoints
      }
    })
    const { kernel } = await startTestKernel(t, { packs: [meta, asks], host, debugEndpoints: true })

    assert.equal(debug, expected)
    assert.equal(kernel.inspect().routes.includes('POST /api/v1/shutdown'), expected)
    const answer = await fetch(`http://127.0.0.1:${kernel.address.port}/api/v1/healthz`)
    assert.equal(answer.headers.get('x-content-type-options'), expected ? null : 'nosniff')
    assert.equal(answer.headers.get('strict-transport-security'), null)
  })
}

test('a stop that is asked for during the start leaves neither an open port nor a registry entry', async () => {
  const home = await freshDir()
  const kernel = await createKernel({ home, port: 0, packs: [meta, instances], log: { level: 'silent' } })

  const starting = kernel.start()
  await kernel.stop()

  const { url } = await starting
  await assert.rejects(fetch(`${url}/api/v1/healthz`))
  assert.deepEqual(await readdir(join(home, 'server', 'instances')), [])
})
