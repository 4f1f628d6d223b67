import assert from 'node:assert/strict'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { freshDir } from '../../helpers/temp.ts'
import { scene } from './scene.ts'

type Item = { id: string; git?: { branch: string | null; pull_request: unknown } }
const itemsOf = (data: unknown) => (data as { items: Item[] }).items

async function repository(dir: string, head: string): Promise<string> {
  await mkdir(join(dir, '.git'), { recursive: true })
  await writeFile(join(dir, '.git', 'HEAD'), head)
  return dir
}

test('the branch is that of HEAD, also in a directory below, in a linked work tree, and null elsewhere; it is kept for a minute', async t => {
  let now = 0
  const { make, query, directory } = await scene(t, { now: () => new Date(now) })
  const root = await repository(await directory(), 'ref: refs/heads/feature/x\n')
  const below = join(root, 'src')
  await mkdir(below)
  const linked = await directory()
  await mkdir(join(root, '.git', 'worktrees', 'w'), { recursive: true })
  await writeFile(join(root, '.git', 'worktrees', 'w', 'HEAD'), 'ref: refs/heads/linked\n')
  await writeFile(join(linked, '.git'), `gitdir: ${join(root, '.git', 'worktrees', 'w')}\n`)
  const detached = await repository(await directory(), '0123456789012345678901234567890123456789\n')
  const plain = await directory()
  const ids: string[] = []
  for (const cwd of [root, below, linked, detached, plain]) ids.push(await make(cwd))
  const branches = async () => {
    const items = itemsOf((await query({ include: 'git' })).data)
    return ids.map(id => items.find(item => item.id === id)?.git?.branch)
  }

  assert.deepEqual(await branches(), ['feature/x', 'feature/x', 'linked', null, null])
  await repository(root, 'ref: refs/heads/main\n')
  now += 59_000
  assert.equal((await branches())[0], 'feature/x')
  now += 2000
  assert.equal((await branches())[0], 'main')
  assert.equal('git' in (itemsOf((await query({})).data)[0] ?? {}), false)
})

test('a pull request comes from the program once per directory; it sees no other secrets, and what it says wrongly is no pull request', async t => {
  const place = await freshProgram(
    '#!/bin/sh\necho "$PWD $SECRET_OF_TEST" >> "$(dirname "$0")/calls"\ncase "$PWD" in\n*draft) echo \'{"number":7,"state":"OPEN","isDraft":true,"url":"https://x.example/7"}\';;\n*merged) echo \'{"number":8,"state":"MERGED","url":"https://x.example/8"}\';;\n*) echo \'{"number":"9","state":"OPEN","url":"javascript:alert(1)"}\';;\nesac\n'
  )
  process.env.SECRET_OF_TEST = 'hunter2'
  t.after(() => delete process.env.SECRET_OF_TEST)
  const { make, query } = await scene(t, { config: { 'sessions-v2': { pull_request_program: place.program } } })
  for (const name of ['draft', 'merged', 'odd']) await make(await repository(join(place.dir, name), 'ref: refs/heads/x\n'))
  await make(join(place.dir, 'draft'))

  const items = itemsOf((await query({ include: 'git', sort: 'meta.created_at_desc' })).data)

  const draft = { number: 7, state: 'open', url: 'https://x.example/7' }
  assert.deepEqual(
    items.map(item => item.git?.pull_request),
    [draft, null, { number: 8, state: 'merged', url: 'https://x.example/8' }, draft]
  )
  const calls = (await readFile(join(place.dir, 'calls'), 'utf8')).trim().split('\n')
  assert.equal(calls.length, 3)
  assert.ok(calls.every(line => !line.includes('hunter2')))
})

test('a program that hangs does not hold the list up', async t => {
  const { program, dir } = await freshProgram('#!/bin/sh\nexec sleep 60\n')
  const config = { 'sessions-v2': { pull_request_program: program, pull_request_ms: 200, git_wait_ms: 20 } }
  const { make, query } = await scene(t, { config })
  await make(await repository(join(dir, 'repo'), 'ref: refs/heads/x\n'))
  const began = performance.now()
  const items = itemsOf((await query({ include: 'git' })).data)
  assert.ok(performance.now() - began < 5000)
  assert.deepEqual(items[0]?.git?.pull_request, null)
})

async function freshProgram(text: string) {
  const dir = await freshDir()
  const program = join(dir, 'program')
  await writeFile(program, text)
  await chmod(program, 0o755)
  return { dir, program }
}
