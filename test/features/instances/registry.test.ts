import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listInstances } from '../../../features/instances/index.ts'
import instances from '../../../features/instances/pack.ts'
import { startTestKernel } from '../../../kernel/testing.ts'

test('a server that listens is among the instances of its home until it stops', async t => {
  const { kernel, home, stop } = await startTestKernel(t, { packs: [instances], version: '1.2.3' })

  const [found, ...more] = await listInstances(home)

  assert.deepEqual(more, [])
  const { server_id, pid, host, port, started_at, host_version } = found!
  assert.deepEqual(
    { server_id, pid, host, port, started_at, host_version },
    {
      server_id: kernel.server_id,
      pid: process.pid,
      host: kernel.address.host,
      port: kernel.address.port,
      started_at: kernel.started_at.getTime(),
      host_version: '1.2.3'
    }
  )
  await stop()
  assert.deepEqual(await listInstances(home), [])
})

test('a pack that comes back while the server listens registers it again', async t => {
  const { kernel, home } = await startTestKernel(t, { packs: [instances] })
  await kernel.unload('instances')
  assert.deepEqual(await listInstances(home), [])

  await kernel.load('instances')

  assert.equal((await listInstances(home))[0]?.server_id, kernel.server_id)
})
