/** A call that is refused anyway is not asked about. */
import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Conversation, conversation } from '../helpers/conversation.ts'
import { freshDir } from '../helpers/temp.ts'

test('an edit that does not fit the file is refused without asking; one that fits what calls before it make of the file is asked', async t => {
  const path = join(await freshDir(), 'outside.txt')
  await writeFile(path, 'one two two')
  const { turn } = await conversation(t)
  const edit = (old_string: string, new_string: string) => ['Edit', { path, old_string, new_string }] as const
  await turn([['Read', { path }]])

  const missing = await turn([edit('three', 'four')])
  assert.deepEqual(missing.asked, [])
  assert.match(missing.results[0]?.output ?? '', /old_string was not found/)
  const doubled = await turn([edit('two', 'four')])
  assert.deepEqual(doubled.asked, [])
  assert.match(doubled.results[0]?.output ?? '', /occurs 2 times/)

  const chain = await turn([edit('one', 'first'), edit('first two', 'second')])
  assert.equal(chain.asked.length, 2)
  assert.deepEqual(
    chain.results.map(result => result.is_error),
    [false, false]
  )
  assert.equal(await readFile(path, 'utf8'), 'second two')

  const again = await turn([['Read', { path }], edit('third', 'x')])
  assert.match(again.results[1]?.output ?? '', /old_string was not found/)
})

/** Every call that is not refused is asked about. */
const askAll = '[permission]\nrules = [{ decision = "deny", pattern = "Read(secret/**)" }, { decision = "ask", pattern = "*" }]\n'

async function askedForAll(t: TestContext) {
  const scene = await conversation(t, { toml: askAll })
  const { cwd } = scene
  await mkdir(join(cwd, 'dir'))
  await writeFile(join(cwd, 'known.txt'), 'one\ntwo two\n')
  await writeFile(join(cwd, 'unread.txt'), 'x')
  await writeFile(join(cwd, 'binary'), 'a\0b')
  await writeFile(join(cwd, 'late'), `${'a'.repeat(600)}\xff`, 'latin1')
  await writeFile(join(cwd, 'picture'), Buffer.from('89504e470d0a1a0a', 'hex'))
  const read = await scene.turn([['Read', { path: 'known.txt' }]])
  assert.equal(read.asked.length, 1, 'a call that fits is asked about')
  return scene
}

test('no tool asks for an approval of a call that is refused anyway', async t => {
  const { turn } = await askedForAll(t)
  const rows: readonly (readonly [tool: string, args: Record<string, unknown>, why: RegExp])[] = [
    ['Read', { path: 'nothing.txt' }, /does not exist/],
    ['Read', { path: 'dir' }, /not a regular file/],
    ['Read', { path: 'binary' }, /binary file/],
    ['Read', { path: 'late' }, /not a UTF-8 text file/],
    ['Read', { path: 'picture' }, /an image/],
    ['Read', { path: 'known.txt', line_offset: 40 }, /only 2 lines/],
    ['Read', { path: '../known.txt' }, /out of the working directory/],
    ['Read', { path: '.env' }, /off limits/],
    ['Read', { path: 'known.txt', line_offset: 0 }, /line_offset/],
    ['Write', { path: 'unread.txt', content: 'y' }, /has not been read/],
    ['Write', { path: 'unread.txt', content: 'y', mode: 'append' }, /has not been read/],
    ['Write', { path: 'dir', content: 'y' }, /not a regular file/],
    ['Write', { path: 'known.txt/below/x', content: 'y' }, /known\.txt is not a directory/],
    ['Write', { path: 'new.txt' }, /content/],
    ...(process.platform === 'linux' ? [['Write', { path: '/proc/nope/x', content: 'y' }, /No permission/] as const] : []),
    ['Edit', { path: 'nothing.txt', old_string: 'a', new_string: 'b' }, /does not exist/],
    ['Edit', { path: 'unread.txt', old_string: 'x', new_string: 'b' }, /has not been read/],
    ['Edit', { path: 'known.txt', old_string: 'three', new_string: 'b' }, /not found/],
    ['Edit', { path: 'known.txt', old_string: 'two', new_string: 'b' }, /occurs 2 times/],
    ['Edit', { path: 'known.txt', old_string: 'one', new_string: 'one' }, /nothing to change/],
    ['Glob', { pattern: '*', path: 'nothing' }, /not a directory/],
    ['Glob', { pattern: '*', path: 'known.txt' }, /not a directory/],
    ['Grep', { pattern: 'x', path: 'nothing' }, /does not exist/],
    ['Grep', { pattern: '(' }, /search failed/],
    ['Grep', { pattern: 'x', type: 'nosuchtype' }, /nosuchtype/],
    ['Bash', { command: 'true', cwd: 'nothing' }, /does not exist/],
    ['Bash', { command: 'true', timeout: 0 }, /timeout/],
    ['Bash', { command: 'a\0b' }, /NUL/],
    ['Nothing', {}, /not found/]
  ]
  for (const [tool, args, why] of rows) {
    const { asked, results } = await turn([[tool, args]])
    assert.deepEqual(asked, [], `${tool} ${JSON.stringify(args)}`)
    assert.match(results[0]?.output ?? '', why)
    assert.equal(results[0]?.is_error, true)
  }
})

test('a call that calls before it in the response may make possible is asked about, and runs', async t => {
  const { turn, cwd } = await askedForAll(t)
  const made = await turn([
    ['Bash', { command: 'mkdir sub && echo made > sub/made.txt && rm unread.txt' }],
    ['Read', { path: 'sub/made.txt' }],
    ['Write', { path: 'unread.txt', content: 'new' }],
    ['Edit', { path: 'unread.txt', old_string: 'new', new_string: 'newer' }],
    ['Glob', { pattern: '*', path: 'sub' }],
    ['Grep', { pattern: 'newer', path: 'unread.txt' }]
  ])
  assert.equal(made.asked.length, 6)
  assert.deepEqual(
    made.results.map(({ is_error }) => is_error),
    [false, false, false, false, false, false]
  )
  assert.equal(await readFile(join(cwd, 'unread.txt'), 'utf8'), 'newer')
})

test('a file that a rule forbids to read is denied, whether it is there or not', async t => {
  const { turn, cwd } = await askedForAll(t)
  await mkdir(join(cwd, 'secret'))
  await writeFile(join(cwd, 'secret', 'there'), 'x')
  for (const tool of ['Read', 'Grep'] as const) {
    for (const path of ['secret/there', 'secret/not-there']) {
      const { asked, results } = await turn([[tool, tool === 'Read' ? { path } : { path, pattern: 'x' }]])
      assert.deepEqual(asked, [])
      assert.match(results[0]?.output ?? '', /permission rule of the user forbids/, `${tool} ${path}`)
    }
  }
})

/** Two commands that are asked about; meanwhile something happens, and the first is approved. */
async function whileAsked(scene: Conversation, happens: () => Promise<unknown>): Promise<string[]> {
  const { prompt, api, waitFor, session_id, events } = scene
  const calls = ['echo one', 'echo two'].map((command, at) => ({ name: 'Bash', args: { command }, id: `call${at}` }))
  await prompt([{ tools: calls }])
  const about = (type: string, text: string) => waitFor(event => event.type === type && JSON.stringify(event.payload).includes(text))
  const { payload } = await about('event.approval.requested', 'echo one')
  await happens()
  await api('POST', `/sessions/${session_id}/approvals/${(payload as { approval_id: string }).approval_id}`, { decision: 'approved' })
  const results = [await about('tool.result', 'call0'), await about('tool.result', 'call1')]
  assert.equal(
    events.filter(({ type }) => type === 'event.approval.requested').length,
    2,
    'the Read of the beginning, and the first command'
  )
  return results.map(result => String((result.payload as { output: unknown }).output))
}

test('a tool that is switched off while an approval is open neither runs nor is asked about again', async t => {
  const scene = await askedForAll(t)
  const outputs = await whileAsked(scene, () => scene.api('POST', '/config', { tools: { disabled: ['Bash'] } }))
  for (const output of outputs) assert.match(output, /switched off in the configuration/)
})

test('a tool that is gone when the approval comes does not run', async t => {
  const scene = await askedForAll(t)
  const outputs = await whileAsked(scene, () => scene.kernel.unload('tools-shell'))
  for (const output of outputs) assert.match(output, /its tool was taken out of the server|Bash is not there any more/)
})

test('after an abort nothing more is asked', async t => {
  const { prompt, api, waitFor, session_id, events } = await askedForAll(t)
  const calls = ['echo one', 'echo two'].map((command, at) => ({ name: 'Bash', args: { command }, id: `abort${at}` }))
  await prompt([{ tools: calls }])
  await waitFor(event => event.type === 'event.approval.requested' && JSON.stringify(event.payload).includes('echo one'))
  await api('POST', `/sessions/${session_id}:abort`)
  await waitFor(event => event.type === 'tool.result' && JSON.stringify(event.payload).includes('abort1'))
  assert.equal(
    events.filter(({ type }) => type === 'event.approval.requested').length,
    2,
    'the Read of the beginning and the first command'
  )
})
