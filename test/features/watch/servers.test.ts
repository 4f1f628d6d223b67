/** Watched paths of sessions of several servers of one home. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { kernels, newSession, until } from '../peers/kernels.ts'

const paths = (from: number, count: number) => Array.from({ length: count }, (_, n) => `f${from + n}`)

test('a connection watches a hundred paths, whichever servers have the sessions', async t => {
  const { cwd, servers } = await kernels(t, [], 3)
  const client = await servers[0]!.connect()
  const ids = await Promise.all(servers.map(server => newSession(server, cwd)))
  for (const server of servers) for (const id of ids) assert.equal((await server.rest.json('GET', `/api/v1/sessions/${id}/status`)).code, 0)
  const add = async (session_id: string, from: number, count: number) => {
    const { code, payload } = await client.request('watch_fs_add', { session_id, paths: paths(from, count) })
    return [code, payload.current_count]
  }
  assert.deepEqual(await add(ids[1]!, 0, 60), [0, 60])
  assert.deepEqual(await add(ids[2]!, 0, 39), [0, 99])
  assert.deepEqual(await add(ids[0]!, 0, 2), [42902, 0])
  assert.deepEqual(await add(ids[0]!, 0, 1), [0, 100])
  assert.deepEqual(await add(ids[1]!, 60, 1), [42902, 0])
  assert.deepEqual(await add(ids[1]!, 0, 60), [0, 100])
  await writeFile(join(cwd, 'f59'), '')
  const { session_id } = await client.next('event.fs.changed')
  assert.equal(session_id, ids[1])

  const { payload } = await client.request('watch_fs_remove', { session_id: ids[2]!, paths: paths(0, 9) })
  assert.deepEqual([payload.watched_paths.length, payload.current_count], [30, 91])
  assert.equal((await servers[1]!.rest.json('POST', `/api/v1/sessions/${ids[1]}:archive`)).code, 0)
  const count = async () => (await client.request('watch_fs_remove', { session_id: ids[1]!, paths: [] })).payload.current_count
  await until(count, left => left === 31)
})
