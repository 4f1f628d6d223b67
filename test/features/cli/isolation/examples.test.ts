/** The examples run in processes of their own as they are: their own tests say so. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startTestServer } from '../../../../testing/index.ts'
import { exampleFile, isolated, isolatedText } from '../../../helpers/isolated.ts'
import { freshDir } from '../../../helpers/temp.ts'

const examples = ['bookmarks', 'checksum', 'house-rules', 'line-model']

test('the tests of every example pass with its pack in a process of its own', async () => {
  const hook = fileURLToPath(new URL('../../../helpers/isolate-examples.js', import.meta.url))
  const tests = examples.map(name => exampleFile(name).replace(/pack\.js$/, `${name}.test.js`))
  const text = tests.map(file => `await import(${JSON.stringify(file)})`).join('\n')
  const args = [...process.execArgv.filter(word => !word.startsWith('--test')), '--import', hook, '--test-reporter=tap']
  const run = promisify(execFile)(process.execPath, [...args, '--input-type=module', '-e', text], {
    env: { ...process.env, NODE_TEST_CONTEXT: undefined },
    maxBuffer: 16 * 1_048_576
  })
  const { stdout } = await run.catch((error: { stdout: string; message: string }) => assert.fail(error.stdout || error.message))
  assert.match(stdout, /^# fail 0$/m)
  assert.ok(Number(/^# pass (\d+)$/m.exec(stdout)?.[1]) >= 16, stdout)
})

test('a model whose pack runs apart answers, with tools, and ends when its turn is aborted', async t => {
  const server = await startTestServer(t, { packs: [await isolated(exampleFile('demo-model'))], approvals: 'approved' })
  const { reason, text, results } = await server.prompt('run `echo tea`', { model: 'demo/demo' })
  assert.deepEqual([reason, results[0]?.output.trim()], ['completed', 'tea'])
  assert.match(text, /That is all you asked for/)
})

test('a model whose pack ends in the middle of an answer is asked again when the pack is back; until then prompts are told so', async t => {
  const ended = join(await freshDir(), 'ended')
  const pack = await isolatedText(`
import { existsSync, writeFileSync } from 'node:fs'
import { LlmAdapters, LlmModels } from 'svc-code/features/llm'
async function* speak() {
  if (!existsSync(${JSON.stringify(ended)})) {
    writeFileSync(${JSON.stringify(ended)}, '')
    process.exit(4)
  }
  yield { type: 'text', text: 'here again' }
  yield { type: 'finish', reason: 'completed', raw_reason: 'stop' }
}
export default definePack({ name: 'moody', setup(ctx) {
  ctx.contribute(LlmAdapters, { protocol: 'moody', needs_credential: false, stream: () => speak() })
  ctx.contribute(LlmModels, { alias: 'moody/one', provider_id: 'moody', protocol: 'moody', name: 'one', display_name: 'One', max_context_size: 32000, capabilities: [] })
} })`)
  const server = await startTestServer(t, { packs: [pack] })
  const failed = new Promise<void>(done =>
    server.kernel.hooks.packState.tap('test', (name, state) => void (name === 'moody' && state === 'Failed' && done()))
  )
  const asked = server.prompt('hello', { model: 'moody/one' })
  await failed
  await assert.rejects(server.submit('hello', { model: 'moody/one' }), /50007|starting again/)
  const { reason, text } = await asked
  assert.deepEqual([reason, text], ['completed', 'here again'])
})
