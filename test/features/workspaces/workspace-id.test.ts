/** The id algorithm, on its own. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { workspaceId } from '../../../features/workspaces/root.ts'

const hash = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 12)

test('an id is the slug of the last segment and a hash of the root without what says nothing in it', () => {
  assert.equal(workspaceId('/a/proj'), `wd_proj_${hash('/a/proj')}`)
  for (const same of ['/a/proj//', '/a//proj', '/a/./proj', '/a/proj/.', '/a/././/proj/./'])
    assert.equal(workspaceId(same), workspaceId('/a/proj'), same)
  for (const other of ['/a/.proj', '/a/proj/..', '/a/b/../proj', '/a /proj'])
    assert.notEqual(workspaceId(other), workspaceId('/a/proj'), other)
  assert.equal(workspaceId('\\\\server\\proj'), `wd_proj_${hash('//server/proj')}`)
  assert.equal(workspaceId('C:\\Work\\My App'), `wd_my-app_${hash('C:/Work/My App')}`)
  assert.notEqual(workspaceId('/a/Proj'), workspaceId('/a/proj'))
})

test('what a slug cannot hold becomes a dash, and an empty one a word', () => {
  assert.equal(workspaceId('/x/ÄÖ  b!c_d.e '), `wd_b-c_d.e_${hash('/x/ÄÖ  b!c_d.e ')}`)
  assert.equal(workspaceId('/'), `wd_workspace_${hash('')}`)
  assert.equal(workspaceId('/x/..'), `wd_workspace_${hash('/x/..')}`)
  assert.equal(workspaceId(`/${'a'.repeat(39)} b`), `wd_${'a'.repeat(39)}_${hash(`/${'a'.repeat(39)} b`)}`)
})
