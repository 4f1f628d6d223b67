/** Neighbours load a pack's public face for its types and tokens: that must start nothing. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { projectRoot } from '../helpers/project-root.ts'

const features = join(fileURLToPath(projectRoot), 'dist', 'features')

/**
 * Imports each door in turn and tells which of them left a handle open or changed the process. From Node 26 on `node:util` itself opens the
 * error output.
 */
const script = `
import 'node:util'
const state = () => JSON.stringify([process.getActiveResourcesInfo().filter(one => one !== 'CloseReq'), process.eventNames(), process.env])
for (const url of JSON.parse(process.argv[1])) {
  const before = state()
  await import(url)
  if (state() !== before) console.log(url)
}
console.log('done')
`

test('importing the public face of any pack starts nothing', () => {
  const doors = readdirSync(features, { recursive: true, encoding: 'utf8' }).filter(name => /^[^/]+\/index\.js$/.test(name))
  const urls = doors.map(name => pathToFileURL(join(features, name)).href)
  assert.ok(urls.length > 20)

  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script, JSON.stringify(urls)], {
    encoding: 'utf8',
    timeout: 30_000
  })

  assert.equal(stderr, '')
  assert.equal(stdout, 'done\n')
})
