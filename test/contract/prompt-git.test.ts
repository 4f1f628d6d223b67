/** The prompt tells the state of the work tree. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { conversation } from '../helpers/conversation.ts'
import { freshDir } from '../helpers/temp.ts'

test('the prompt gives branch and changes of the work tree; nothing that the repository configures is run', async t => {
  const cwd = await freshDir()
  const git = (...args: string[]) => execFileSync('git', ['-c', 'user.name=u', '-c', 'user.email=e', ...args], { cwd, stdio: 'pipe' })
  git('init', '-q', '-b', 'topic')
  await writeFile(join(cwd, 'kept'), 'one')
  await writeFile(join(cwd, '.gitattributes'), '* filter=f.g\n')
  git('add', '.')
  git('commit', '-q', '-m', 'first')
  await writeFile(join(cwd, 'kept'), 'two')
  await writeFile(join(cwd, 'fresh'), '')
  for (const key of ['core.fsmonitor', 'filter.f.g.clean', 'filter.f.g.process']) git('config', key, `touch ${join(cwd, 'ran')}; cat`)
  git('config', 'filter.f.g.required', 'true')
  const { prompt, upstream } = await conversation(t, { cwd })
  await prompt([{ text: 'done' }])
  const { body } = await upstream.arrived(0)
  const system = String((body.messages as { content: unknown }[])[0]?.content)
  assert.match(system, /^## topic\n M kept\n\?\? fresh$/m)
  assert.deepEqual((await readdir(cwd)).sort(), ['.git', '.gitattributes', 'fresh', 'kept'])
})
