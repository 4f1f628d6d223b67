/** The permission chain as a client meets it: real tools, real configuration, approvals over REST. */
import assert from 'node:assert/strict'
import { link, mkdir, readFile, symlink, utimes, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { test } from 'node:test'
import { Tools } from '../../features/tools/index.ts'
import { definePack } from '../../kernel/index.ts'
import { scripted } from '../features/tools/fakes.ts'
import { conversation } from '../helpers/conversation.ts'
import { freshDir } from '../helpers/temp.ts'

test('an allow rule with a wildcard does not let a second command through', async t => {
  const { turn, cwd } = await conversation(t, { toml: 'permission.rules = [{ decision = "allow", pattern = "Bash(echo *)" }]' })
  await writeFile(join(cwd, 'precious'), 'x')
  assert.deepEqual((await turn([['Bash', { command: 'echo a; echo b' }]])).asked, [])
  const second = await turn([['Bash', { command: 'echo a; rm precious' }]], {}, { decision: 'rejected' })
  assert.deepEqual(second.asked, ['Running: echo a; rm precious'])
  const hidden = await turn([['Bash', { command: 'echo "$(rm precious)" > out' }]], {}, { decision: 'rejected' })
  assert.equal(hidden.asked.length, 1)
  assert.equal(await readFile(join(cwd, 'precious'), 'utf8'), 'x')
})

test('a deny rule holds for a command hidden in a line, in every mode', async t => {
  const { turn } = await conversation(t, { toml: 'permission.deny = [{ tool = "Bash", match = "rm *", reason = "keep it" }]' })
  for (const permission_mode of ['manual', 'yolo', 'auto']) {
    const { asked, results } = await turn([['Bash', { command: 'true && (sudo rm -rf x)' }]], { permission_mode })
    assert.deepEqual(asked, [])
    assert.match(results[0]?.output ?? '', /forbids.*keep it/)
  }
})

test('no approval is shown for a call that is not made anyway', async t => {
  const toml = `permission.deny = [{ tool = "Bash", match = "rm *" }]
hooks = [{ event = "PreToolUse", matcher = "Write", command = "echo not now >&2; exit 2" }]`
  const { turn } = await conversation(t, { toml })
  const { asked, results } = await turn([
    ['Bash', { command: 'rm x' }],
    ['Write', { path: 'a', content: 'x' }],
    ['Bash', { command: 1 }],
    ['Absent', {}],
    ['ExitPlanMode', {}],
    ['Bash', { command: 'touch made' }]
  ])
  assert.deepEqual(asked, ['Running: touch made'])
  assert.equal(results.length, 6)
})

test('calls of one response that change the same file do so in the order of the response', async t => {
  const { turn, cwd } = await conversation(t)
  const append = (content: string): [string, Record<string, unknown>] => ['Write', { path: 'log', content, mode: 'append' }]
  const calls = [...'abcdefgh'].map(append)
  await turn([calls[0]!, ['Edit', { path: 'log', old_string: 'a', new_string: 'A' }], ...calls.slice(1)], { permission_mode: 'yolo' })
  assert.equal(await readFile(join(cwd, 'log'), 'utf8'), 'Abcdefgh')
})

test('rules with an argument judge tools of tasks by the task or what they look at, and addresses by the host however it is written', async t => {
  const rules = ['TaskList(all)', 'TaskOutput(bash-*)', 'WaitFor(any)', 'FetchURL(https://site.invalid/*)']
  const deny = rules.map(pattern => `{ decision = "deny", pattern = "${pattern}" }`)
  const { turn } = await conversation(t, { toml: `permission.rules = [${deny}]` })
  const { results } = await turn([
    ['TaskList', { active_only: false }],
    ['TaskOutput', { task_id: 'bash-12345678' }],
    ['WaitFor', { timeout: 1 }],
    ['FetchURL', { url: 'https://site.invalid./a' }],
    ['FetchURL', { url: 'https://site.invalid../a' }],
    ['TaskList', {}]
  ])
  assert.deepEqual(
    results.map(({ output }) => /forbids/.test(output)),
    [true, true, true, true, true, false]
  )
})

test('an approval for the session counts for the same line in the same directory only, and survives a restart', async t => {
  const first = await conversation(t)
  await mkdir(join(first.cwd, 'sub'))
  const session = { decision: 'approved', scope: 'session' }
  assert.equal((await first.turn([['Bash', { command: 'echo *' }]], {}, session)).asked.length, 1)
  assert.deepEqual((await first.turn([['Bash', { command: 'echo *' }]])).asked, [])
  assert.equal((await first.turn([['Bash', { command: 'echo *', cwd: 'sub' }]])).asked.length, 1, 'elsewhere it is another deed')
  assert.equal((await first.turn([['Bash', { command: 'echo *; true' }]])).asked.length, 1)
  assert.equal((await first.turn([['Bash', { command: 'pwd', cwd: 'sub' }]], {}, session)).asked.length, 1)
  await first.stop()
  const { home, cwd, session_id } = first
  const second = await conversation(t, { home, cwd, session_id })
  assert.deepEqual((await second.turn([['Bash', { command: 'echo *' }]])).asked, [])
  assert.deepEqual((await second.turn([['Bash', { command: 'pwd', cwd: 'sub' }]])).asked, [])
  assert.equal((await second.turn([['Bash', { command: 'pwd' }]])).asked.length, 1)
})

test('a rule that allows a directory does not reach through a link that leads out of it', async t => {
  const other = await conversation(t)
  const { turn, cwd } = await conversation(t, { toml: 'permission.rules = [{ decision = "allow", pattern = "Write(free/**)" }]' })
  await mkdir(join(cwd, 'free'))
  await symlink(other.cwd, join(cwd, 'free/out'))
  assert.deepEqual((await turn([['Write', { path: 'free/a', content: 'x' }]])).asked, [])
  const through = await turn([['Write', { path: join(cwd, 'free/out/b'), content: 'x' }]], {}, { decision: 'rejected' })
  assert.equal(through.asked.length, 1)
})

test('a path that was swapped for a link after its check is refused', async t => {
  const other = await conversation(t)
  const { turn, cwd } = await conversation(t)
  await mkdir(join(cwd, '.git'))
  await writeFile(join(cwd, '.git/HEAD'), 'ref: refs/heads/main\n')
  await writeFile(join(cwd, '.env'), 'SECRET=1')
  const theirs = join(other.cwd, 'theirs')
  await writeFile(theirs, 'a')
  await writeFile(join(cwd, 'own'), 'a')
  await turn([['Read', { path: 'own' }]])
  const { asked, results } = await turn([
    ['Bash', { command: `ln -s ${other.cwd} d; ln -s .env notes; ln -sf ${theirs} own` }],
    ['Write', { path: 'd/new', content: 'x' }],
    ['Read', { path: 'notes' }],
    ['Edit', { path: 'own', old_string: 'a', new_string: 'b' }],
    ['Write', { path: 'own', content: '+', mode: 'append' }]
  ])
  assert.equal(asked.length, 1)
  assert.match(results[1]?.output ?? '', /leads to another file now/)
  for (const result of results.slice(2)) assert.match(result.output, /leads to another file now/)
  assert.equal(await readFile(theirs, 'utf8'), 'a')
})

test('a file that changes while its approval waits is not overwritten', async t => {
  const { prompt, api, session_id, cwd, waitFor } = await conversation(t)
  const path = join(cwd, 'a.txt')
  const change = [
    { name: 'Write', args: { path: 'a.txt', content: 'mine' }, id: 'c1' },
    { name: 'Edit', args: { path: 'a.txt', old_string: 'old', new_string: 'mine' }, id: 'c2' },
    { name: 'Write', args: { path: 'a.txt', content: 'mine', mode: 'append' }, id: 'c3' }
  ]
  for (const { name, args, id } of change) {
    await writeFile(path, 'old')
    await prompt([{ tools: [{ name: 'Read', args: { path: 'a.txt' }, id: `r${id}` }] }])
    await waitFor(event => event.type === 'tool.result' && JSON.stringify(event.payload).includes(`"r${id}"`))
    await prompt([{ tools: [{ name, args, id }] }])
    const asked = await waitFor(event => event.type === 'event.approval.requested' && JSON.stringify(event.payload).includes(`"${id}"`))
    await writeFile(path, 'theirs')
    await utimes(path, 1, 1)
    const { approval_id } = asked.payload as { approval_id: string }
    await api('POST', `/sessions/${session_id}/approvals/${approval_id}`, { decision: 'approved' })
    const done = await waitFor(event => event.type === 'tool.result' && JSON.stringify(event.payload).includes(`"${id}"`))
    assert.match(JSON.stringify(done.payload), /has changed since it was last read/, `${name} ${args.mode ?? ''}`)
    assert.equal(await readFile(path, 'utf8'), 'theirs')
  }
})

test('one unreadable permission rule takes no other with it, and everything is asked for until it is corrected', async t => {
  const { turn, api } = await conversation(t, {
    toml: [
      'permission.rules = [',
      '  { decision = "deny", pattern = "Bash(rm *)" },',
      '  { decision = "deny", pattern = "Bash(shutdown" },',
      '  { decision = "allow", pattern = "Bash(echo *)" }',
      ']'
    ].join('\n')
  })
  const denied = await turn([['Bash', { command: 'rm -rf x' }]], { permission_mode: 'yolo' })
  assert.match(denied.results[0]?.output ?? '', /forbids/)
  assert.equal((await turn([['Bash', { command: 'echo a' }]])).asked.length, 1, 'nothing is sure while a rule is unreadable')
  assert.equal((await turn([['Bash', { command: 'echo a' }]], { permission_mode: 'auto' })).asked.length, 1)
  const rules = [{ decision: 'allow', pattern: 'Bash(echo *)' }]
  assert.equal((await api('POST', '/config', { permission: { rules } })).code, 0)
  assert.deepEqual((await turn([['Bash', { command: 'echo a' }]], { permission_mode: 'yolo' })).asked, [])
})

test('sensitive and git control paths are asked for in yolo mode, and nothing is in auto mode', async t => {
  const { turn, cwd } = await conversation(t)
  await mkdir(join(cwd, '.git'))
  await writeFile(join(cwd, '.git/HEAD'), 'ref: refs/heads/main\n')
  const hook = (name: string) => ['Write', { path: `.git/hooks/${name}`, content: 'x' }] as const
  assert.equal((await turn([hook('a'), ['Bash', { command: 'true' }]], { permission_mode: 'yolo' })).asked.length, 1)
  assert.equal((await turn([['Write', { path: 'plain', content: 'x' }]], { permission_mode: 'manual' })).asked.length, 0)
  assert.equal((await turn([hook('b')], { permission_mode: 'auto' })).asked.length, 0)
  const refused = await turn([['Write', { path: '.env', content: 'x' }]])
  assert.deepEqual(refused.asked, [])
  assert.match(refused.results[0]?.output ?? '', /off limits/)
})

test('writing what makes git, a shell or an editor run something is asked for, also in yolo mode', async t => {
  const { turn, cwd } = await conversation(t)
  await mkdir(join(cwd, '.git'))
  await writeFile(join(cwd, '.git/HEAD'), 'ref: refs/heads/main\n')
  await mkdir(join(cwd, 'half/objects'), { recursive: true })
  await mkdir(join(cwd, 'bare'))
  await writeFile(join(cwd, 'bare/HEAD'), 'ref: refs/heads/main\n')
  const control = [
    '.husky/pre-commit',
    '.envrc',
    'sub/.envrc',
    '.vscode/tasks.json',
    'new/HEAD',
    'half/config',
    'bare/objects/a',
    'bare/hooks/b'
  ]
  const ordinary = ['src/config.ts', 'src/objects/a.ts', '.vscode/extensions.json', 'config/a.json', 'lone/config']
  for (const permission_mode of ['manual', 'yolo']) {
    const { asked } = await turn(
      [...control, ...ordinary].map(path => ['Write', { path, content: permission_mode }]),
      { permission_mode },
      { decision: 'rejected' }
    )
    assert.deepEqual(
      asked,
      control.map(path => `Writing ${join(cwd, path)}`),
      permission_mode
    )
  }
})

test('appending through a hard link counts as writing outside, a link made meanwhile is refused', async t => {
  const { turn, cwd } = await conversation(t)
  const other = await conversation(t)
  await mkdir(join(cwd, '.git'))
  await writeFile(join(cwd, '.git/HEAD'), 'ref: refs/heads/main\n')
  const outside = join(other.cwd, 'outside')
  for (const name of ['outside', 'later']) await writeFile(join(other.cwd, name), 'kept')
  await link(outside, join(cwd, 'inside'))
  await writeFile(join(cwd, 'own'), 'own')
  await turn([
    ['Read', { path: 'inside' }],
    ['Read', { path: 'own' }]
  ])
  const append = (path: string) => ['Write', { path, content: '+', mode: 'append' }] as const
  const { asked, results } = await turn([append('inside'), append('own')], {}, { decision: 'rejected' })
  assert.deepEqual(asked, [`Appending to ${join(cwd, 'inside')}`])
  assert.equal(results[1]?.is_error, false)
  const swapped = await turn([['Bash', { command: `ln own ${join(other.cwd, 'second')}` }], append('own')])
  assert.match(swapped.results[1]?.output ?? '', /another name by now/)
  assert.equal((await turn([['Write', { path: 'inside', content: 'new' }]])).asked.length, 0, 'replacing leaves the other name alone')
  assert.equal(await readFile(outside, 'utf8'), 'kept')
  assert.equal(await readFile(join(other.cwd, 'second'), 'utf8'), 'own+')
})

test('Grep and Glob leave out what a rule forbids to Read, and say so', async t => {
  const { turn, cwd } = await conversation(t, { toml: 'permission.deny = [{ tool = "Read", match = "secret/**" }]' })
  await mkdir(join(cwd, 'secret'))
  await writeFile(join(cwd, 'secret/a.txt'), 'needle')
  await writeFile(join(cwd, 'b.txt'), 'needle')
  for (const permission_mode of ['manual', 'yolo', 'auto']) {
    const { results } = await turn(
      [
        ['Grep', { pattern: 'needle', output_mode: 'content' }],
        ['Glob', { pattern: '*.txt' }],
        ['Grep', { pattern: 'needle', path: join(cwd, 'secret'), output_mode: 'count_matches' }],
        ['Grep', { pattern: 'needle', path: 'secret/a.txt' }]
      ],
      { permission_mode }
    )
    const outputs = results.map(result => result.output)
    assert.deepEqual(outputs.slice(0, 2), ['b.txt:1:needle\n(1 file that must not be read left out)', 'b.txt'])
    assert.match(outputs[2]!, /^No matches found/)
    assert.match(outputs[3]!, /forbids/)
  }
})

test('an approval for the session covers the same argument as a text, whatever characters it has', async t => {
  let ran = 0
  const weather = {
    ...scripted({ name: 'Weather' }),
    prepare: ({ path = '' }: { path?: string }) => ({
      description: `Weather in ${path}`,
      accesses: [],
      approval_argument: path,
      run: async () => ({ output: `run ${++ran}` })
    })
  }
  const more = definePack({ name: 'weather', setup: ctx => ctx.contribute(Tools, weather) })
  const { turn } = await conversation(t, {
    packs: packs => [...packs, more],
    toml: 'permission.rules = [{ decision = "allow", pattern = "Weather(New *)" }, { decision = "deny", pattern = "Weather(?tlantis)" }]'
  })
  const session = { decision: 'approved', scope: 'session' }
  for (const path of ['*', '!Rome', '']) assert.equal((await turn([['Weather', { path }]], {}, session)).asked.length, 1)
  const { asked, results } = await turn(
    ['*', '!Rome', '', 'Paris', 'New Delhi', 'Atlantis'].map(path => ['Weather', { path }]),
    {},
    { decision: 'rejected' }
  )
  assert.deepEqual(asked, ['Weather in Paris'])
  assert.match(results[5]?.output ?? '', /forbids/)
})

test('what belongs to the home is off limits by its place, whatever name or root it is asked for by', async t => {
  const real = await freshDir()
  const link = join(await freshDir(), 'home')
  await symlink(real, link)
  const { turn, cwd, home } = await conversation(t, { home: link })
  await mkdir(join(home, 'credentials'), { recursive: true })
  await writeFile(join(home, 'credentials/work.json'), '{"token":"needle"}')
  await symlink(join(home, 'config.toml'), join(cwd, 'innocent'))
  for (const permission_mode of ['manual', 'yolo', 'auto']) {
    const { asked, results } = await turn(
      [
        ['Read', { path: join(home, 'config.toml') }],
        ['Read', { path: join(real, 'config.toml') }],
        ['Read', { path: join(real, 'notes').toUpperCase() }],
        ['Read', { path: 'innocent' }],
        ['Read', { path: join(home, 'server.token') }],
        ['Grep', { pattern: 'needle|api_key', path: home, output_mode: 'content' }],
        ['Grep', { pattern: 'api_key', path: join(home, 'config.toml'), output_mode: 'content' }],
        ['Glob', { pattern: '*', path: home }],
        ['Write', { path: join(home, 'config.toml'), content: '' }],
        ['Write', { path: join(home, 'packs/new.js'), content: '' }],
        ['Read', { path: '/proc/self/environ' }],
        ['Grep', { pattern: '^P', path: '/proc/self/environ' }],
        ['Read', { path: `/proc/${process.pid}/task/${process.pid}/environ` }],
        [
          'Grep',
          { pattern: 'needle|api_key', path: dirname(real), output_mode: 'content', include_ignored: true, glob: `**/${basename(real)}/**` }
        ]
      ],
      { permission_mode }
    )
    assert.deepEqual(asked, [])
    for (const [index, { output }] of results.slice(0, -1).entries())
      assert.match(output, /off limits|leads out/, `${permission_mode} ${index}`)
    assert.match(results.at(-1)?.output ?? '', /^No matches found\.\n\(\d+ files? that must not be read left out\)/)
  }
})

test('what belongs to the home is off limits also where the home is the working directory', async t => {
  const home = await freshDir()
  const { turn } = await conversation(t, { home, cwd: home })
  await writeFile(join(home, 'notes'), 'api_key')
  const { asked, results } = await turn([
    ['Read', { path: 'config.toml' }],
    ['Write', { path: 'packs/new.js', content: '' }],
    ['Grep', { pattern: 'api_key', path: 'notes' }],
    ['Bash', { command: 'cat config.toml' }]
  ])
  for (const { output } of results.slice(0, -1)) assert.match(output, /off limits/)
  assert.deepEqual(asked, ['Running: cat config.toml'])
})

test('a command that names a file of the home is asked for, whatever allows it, and a kept result of the agent can be read', async t => {
  const allow = ['cat *', 'cd *', 'grep *', 'tar *'].map(match => `{ tool = "Bash", match = "${match}" }`)
  const toml = `permission.allow = [${allow}]`
  const { turn, cwd, home } = await conversation(t, { toml })
  const token = join(home, 'server.token')
  await symlink(dirname(home), join(cwd, 'up'))
  await symlink(home, join(cwd, 'link'))
  await symlink(join(home, 'config.toml'), join(cwd, 'linked.toml'))
  process.env.TEST_PLACE = home
  t.after(() => delete process.env.TEST_PLACE)
  const lines = [
    `cat < ${token}`,
    `cat ${token}`,
    `cat "${home}"/config.toml`,
    `cat ${home}/sub/../server.token`,
    `cat ${home}/*.toml`,
    `cat ${home.slice(0, -1)}?/server.token`,
    `cat ${dirname(home)}/*/server.token`,
    'cat $TEST_PLACE/config.toml',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: shell text
    'cat "${TEST_PLACE}/config.toml"',
    `cat up/${basename(home)}/config.toml`,
    `cd ${dirname(home)} && cat ${basename(home)}/config.toml`,
    `cat --file=${home}/config.toml`,
    `cat ${dirname(home)}/{${basename(home)},x}/config.toml`,
    `cd ${dirname(home)} && cat $PWD/${basename(home)}/config.toml`,
    `grep -r api_key ${dirname(home)}`,
    `cd ${dirname(home)} && grep -rn api_key .`,
    `tar cf - ${dirname(home)} | grep -a api_key`,
    'cat l*/config.toml',
    'cat *.toml',
    'grep -R api_key .'
  ]
  for (const permission_mode of ['manual', 'yolo']) {
    const { asked } = await turn(
      lines.map(command => ['Bash', { command }]),
      { permission_mode },
      { decision: 'rejected' }
    )
    assert.deepEqual(
      asked,
      lines.map(line => `Running: ${line}`)
    )
  }
  const { results } = await turn([['Bash', { command: 'seq 1 20000' }]])
  const path = /whole output is in (\S+)/.exec(results[0]?.output ?? '')?.[1] ?? ''
  const read = await turn([
    ['Read', { path, line_offset: 20_000 }],
    ['Bash', { command: `cat ${path} | cat -` }]
  ])
  assert.match(read.results[0]?.output ?? '', /20000/)
  assert.deepEqual(read.asked, [])
})

test('another name (hard link) of a file in which the home keeps secrets is off limits as that file is', async t => {
  const toml = 'permission.allow = [{ tool = "Bash", match = "cat *" }, { tool = "Bash", match = "head *" }]'
  const { turn, cwd, home } = await conversation(t, { toml })
  await mkdir(join(cwd, 'sub'))
  await link(join(home, 'config.toml'), join(cwd, 'sub/hard'))
  await link(join(home, 'server.token'), join(cwd, 'sub/token'))
  await writeFile(join(cwd, 'sub/free'), 'permission')
  await link(join(cwd, 'sub/free'), join(cwd, 'sub/twice'))
  for (const permission_mode of ['manual', 'yolo']) {
    const { asked, results } = await turn(
      [
        ['Read', { path: 'sub/hard' }],
        ['Read', { path: 'sub/token' }],
        ['Edit', { path: 'sub/hard', old_string: 'cat', new_string: 'dog' }],
        ['Write', { path: 'sub/hard', content: '' }],
        ['Grep', { pattern: 'permission', path: 'sub/hard' }],
        ['Grep', { pattern: 'permission' }],
        ['Bash', { command: 'cat sub/hard' }],
        ['Bash', { command: 'head sub/h*' }],
        ['Bash', { command: 'cat sub/twice' }]
      ],
      { permission_mode },
      { decision: 'rejected' }
    )
    assert.deepEqual(asked, ['Running: cat sub/hard', 'Running: head sub/h*'])
    for (const { output } of results.slice(0, 5)) assert.match(output, /off limits/)
    assert.match(results[5]?.output ?? '', /sub\/free\n.*\(1 file that must not be read left out\)/s)
    assert.equal(results.at(-1)?.output, 'permission')
  }
})
