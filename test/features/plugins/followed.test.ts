/** Plugins that one server of the home changes, at another one that is linked with it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Frame } from '../../../kernel/testing.ts'
import { kernels, newSession, prompt, until } from '../peers/kernels.ts'
import { directory, manifest } from './scene.ts'

const timeout = 60_000

test('clients of another server are told of a plugin once what it brings is there: the next prompt runs its hooks, or none', {
  timeout
}, async t => {
  const { servers, cwd, upstream } = await kernels(t, [[{ text: 'One.' }], [{ text: 'Two.' }]])
  const [first, second] = [servers[0]!, servers[1]!]
  const id = await newSession(second, cwd)
  const socket = await second.connect()
  await socket.request('subscribe', { session_ids: [id] })
  const changes = (frames: readonly Frame[]) => frames.filter(({ type }) => type === 'event.plugin.changed').length
  const told = (count: number) =>
    until(
      async () => changes(socket.frames),
      each => each >= count
    )
  const ask = async (text: string) => {
    const prompt_id = await prompt(second, id, text)
    await socket.next(({ type, payload }) => type === 'prompt.completed' && payload.promptId === prompt_id)
  }
  const source = await directory(manifest('kit', { hooks: [{ event: 'UserPromptSubmit', command: 'echo kit heard it' }] }))

  assert.equal((await first.rest.json('POST', '/api/v1/plugins', { source })).code, 0)
  await told(1)
  await ask('with it')
  assert.equal((await first.rest.json('POST', '/api/v1/plugins/kit:disable')).code, 0)
  await told(2)
  await ask('without it')

  const heard = upstream.requests.map(({ body }) => JSON.stringify(body).match(/kit heard it/g)?.length)
  assert.deepEqual(heard, [1, 1], 'the second request has what the first prompt brought')
  assert.equal(changes(socket.frames), 2)
})
