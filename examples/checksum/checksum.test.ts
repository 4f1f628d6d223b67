import assert from 'node:assert/strict'
import { open, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { toolProgress } from '../../features/agent/index.ts'
import { approvalRequested, approvalResolved } from '../../features/interactions/index.ts'
import { abortSession } from '../../features/prompts/index.ts'
import { scriptedModel, startTestServer, toolCalls } from '../../testing/index.ts'
import checksum from './pack.ts'

const asks = (path: string) => scriptedModel(toolCalls({ name: 'Checksum', args: { path } }), 'done')

/** A file that takes its time, and no room. */
async function largeFile(path: string) {
  const file = await open(path, 'w')
  await file.truncate(8 * 2 ** 30)
  await file.close()
}

test('the call asks, tells how far it is, and gives the model its result', async t => {
  const model = asks('tea.txt')
  const server = await startTestServer(t, { packs: [checksum], model, approvals: 'approved' })
  await writeFile(join(server.cwd, 'tea.txt'), 'green')

  const { reason, text, results } = await server.prompt('sum up the tea')

  assert.deepEqual([reason, text], ['completed', 'done'])
  assert.deepEqual(
    results.map(({ output, is_error }) => [output, is_error]),
    [['sha256 ba4788b226aa8dc2e6dc74248bb9f618cfa8c959e0c26c147be48f6839a0b088', false]]
  )
  assert.equal((await server.waitFor(approvalRequested)).payload.tool_name, 'Checksum')
  assert.equal((await server.waitFor(toolProgress)).payload.update.percent, 100)
  assert.match(JSON.stringify(model.requests[1]?.messages.at(-1)), /ba4788b2/)
})

test('a call that is not approved does not run', async t => {
  const server = await startTestServer(t, { packs: [checksum], model: asks('tea.txt'), approvals: 'rejected' })
  await writeFile(join(server.cwd, 'tea.txt'), 'green')

  const { results } = await server.prompt('sum up the tea')

  assert.equal(results[0]?.is_error, true)
  assert.ok(server.events.every(event => event.type !== toolProgress.type))
})

test('nobody is asked about a file that is not there', async t => {
  const server = await startTestServer(t, { packs: [checksum], model: asks('coffee.txt') })

  const { results } = await server.prompt('sum up the coffee')

  assert.match(results[0]?.output ?? '', /^There is no file .*coffee\.txt\.$/)
})

test('it stops when the user aborts', async t => {
  const server = await startTestServer(t, { packs: [checksum], model: asks('large'), approvals: 'approved' })
  await largeFile(join(server.cwd, 'large'))
  const { ended } = await server.submit('sum up the large one')
  await server.waitFor(toolProgress)

  await server.call(abortSession, { params: { session_id: server.session_id } })

  const { reason, results } = await ended
  assert.deepEqual([reason, results[0]?.is_error], ['aborted', true])
})

test('it stops when its pack is unloaded, and the turn goes on without it', async t => {
  const server = await startTestServer(t, { packs: [checksum], model: asks('large'), approvals: 'approved' })
  await largeFile(join(server.cwd, 'large'))
  const { ended } = await server.submit('sum up the large one')
  await server.waitFor(toolProgress)

  await server.kernel.unload('checksum')

  const { reason, text, results } = await ended
  assert.deepEqual([reason, text, results[0]?.is_error], ['completed', 'done', true])
  assert.match(results[0]?.output ?? '', /taken out of the server/)
})

test('a question about a call is withdrawn when the pack is unloaded', async t => {
  const server = await startTestServer(t, { packs: [checksum], model: asks('tea.txt') })
  await writeFile(join(server.cwd, 'tea.txt'), 'green')
  const { ended } = await server.submit('sum up the tea')
  await server.waitFor(approvalRequested)

  await server.kernel.unload('checksum')

  assert.equal((await server.waitFor(approvalResolved)).payload.decision, 'cancelled')
  assert.match((await ended).results[0]?.output ?? '', /taken out of the server/)
})
