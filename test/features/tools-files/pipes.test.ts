/** A pipe that took the place of a file after the look at it holds no thread of the server. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { nodeFileOps } from '../../../features/tools-files/file-ops.ts'
import { freshDir } from '../../helpers/temp.ts'

async function pipe(t: TestContext): Promise<string> {
  const at = join(await freshDir(), 'pipe')
  execFileSync('mkfifo', [at])
  t.after(() => closeSync(openSync(at, constants.O_RDWR | constants.O_NONBLOCK))) // frees who waits
  return at
}

const soon = { timeout: 5000 }

test('a pipe is read as an empty file', soon, async t => {
  const at = await pipe(t)
  assert.equal((await nodeFileOps.readAll(at)).length, 0)
  for await (const part of nodeFileOps.read(at, new AbortController().signal)) assert.equal(part.length, 0)
})

test('nothing is appended to a pipe from which nobody reads', soon, async t => {
  await assert.rejects(nodeFileOps.append(await pipe(t), Buffer.from('x')), { code: 'ENXIO' })
})
