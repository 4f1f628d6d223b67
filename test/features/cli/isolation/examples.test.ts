/** The examples run in processes of their own as they are: their own tests say so. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startTestServer } from '../../../../testing/index.ts'
import { exampleFile, isolated } from '../../../helpers/isolated.ts'

const examples = ['bookmarks', 'checksum', 'house-rules', 'line-model']

test('the tests of every example pass with its pack in a process of its own', async () => {
  const hook = fileURLToPath(new URL('../../../helpers/isolate-examples.js', import.meta.url))
  const tests = examples.map(name => exampleFile(name).replace(/pack\.js$/, `${name}.test.js`))
  const text = tests.map(file => `await import(${JSON.stringify(file)})`).join('\n')
  const run = promisify(execFile)(process.execPath, ['--import', hook, '--test-reporter=tap', '--input-type=module', '-e', text], {
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
