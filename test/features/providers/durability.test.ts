/** Several servers on one home, sudden death, and a configuration of a thousand providers. */
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { readToml } from '../../../features/config/toml.ts'
import {
  createProvider,
  deleteProvider,
  listModels,
  listProviders,
  readProvider,
  refreshProvider,
  replaceProvider,
  setDefaultModel
} from '../../../features/providers/index.ts'
import { program } from '../../helpers/child.ts'
import { freshDir } from '../../helpers/temp.ts'
import { body, start } from './scene.ts'

test('two servers on one home see each other at once and lose nothing', async t => {
  const one = await start(t)
  const two = await start(t, { home: one.home })

  await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((id, n) => [one, two][n % 2]!.call(createProvider, { body: body(id) })))

  for (const { call } of [one, two]) {
    const ids = (await call(listProviders)).data.items.map(({ id }) => id)
    assert.deepEqual(ids.sort(), ['a', 'b', 'c', 'd', 'e', 'f'])
  }
  const codes = await Promise.all([one, two].map(({ call }) => call(createProvider, { body: body('same') }).then(({ code }) => code)))
  assert.deepEqual(codes.sort(), [0, 40921])
  await one.call(setDefaultModel, { params: { model_id: 'same/small' } })
  await two.call(deleteProvider, { params: { provider_id: 'a' } })
  assert.equal((await one.call(refreshProvider, { params: { provider_id: 'a' } })).code, 40412)
  await two.call(deleteProvider, { params: { provider_id: 'b' } })
  assert.equal((await one.call(readProvider, { params: { provider_id: 'b' } })).code, 40412)
  assert.ok(!(await one.call(listModels)).data.items.some(({ model }) => model === 'a/small'))
  assert.equal((await two.file()).default_model, 'same/small')
})

test('a renamed provider keeps its place for the next server, too', async t => {
  const one = await start(t)
  for (const id of ['a', 'b', 'c']) await one.call(createProvider, { body: body(id) })
  const { id: _, ...form } = body('b')

  await one.call(replaceProvider, { params: { provider_id: 'b' }, body: { ...form, new_id: 'renamed' } })

  const two = await start(t, { home: one.home })
  for (const { call } of [one, two])
    assert.deepEqual(
      (await call(listProviders)).data.items.map(({ id }) => id),
      ['a', 'renamed', 'c']
    )
})

test('a killed server leaves whole providers, and every one that it acknowledged', async t => {
  const home = await freshDir()
  for (const [name, last] of [
    ['x', 1],
    ['y', 4]
  ] as const) {
    const child = fork(program('create-providers'), [home, name])
    t.after(() => child.kill('SIGKILL'))
    const done = once(child, 'exit')
    child.on('message', n => {
      if (n === last) child.kill('SIGKILL')
    })
    await done
    const { providers, models } = readToml(await readFile(join(home, 'config.toml'), 'utf8')) as Record<
      string,
      Record<string, { provider: string }>
    >
    assert.ok(Object.hasOwn(providers!, `${name}${last}`))
    for (const id of Object.keys(providers!)) assert.equal(Object.values(models!).filter(model => model.provider === id).length, 3)
  }
})
