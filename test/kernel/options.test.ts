import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KernelOptions } from '../../kernel/environment.ts'
import { definePack, type Pack } from '../../kernel/index.ts'
import { createKernel } from '../../kernel/kernel.ts'
import { freshDir } from '../helpers/temp.ts'

test('an option that is given as undefined is not given: its default holds', async () => {
  const slow = definePack({ name: 'slow', setup: () => new Promise(resolve => setTimeout(resolve, 20)) })
  const packs: readonly Pack[] = [slow]
  const given = { home: await freshDir(), packs, port: 0, log: { level: 'silent' } } as const
  const names = [
    'version',
    'config',
    'required',
    'host',
    'now',
    'newId',
    'allowedHosts',
    'bodyLimitBytes',
    'setupTimeoutMs',
    'graceMs',
    'onViolation'
  ]
  const kernel = await createKernel({ ...given, ...(Object.fromEntries(names.map(name => [name, undefined])) as Partial<KernelOptions>) })
  try {
    const { host } = await kernel.start()
    assert.equal(host, '127.0.0.1')
    assert.deepEqual(kernel.features(), [{ name: 'slow', state: 'Active', meta: {} }])
  } finally {
    await kernel.stop()
  }
})
