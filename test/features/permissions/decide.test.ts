import assert from 'node:assert/strict'
import { mkdir, realpath, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { decide } from '../../../features/permissions/chain.ts'
import type { Approval, PermissionMode } from '../../../features/permissions/contract.ts'
import { findWorkTree } from '../../../features/permissions/control-files.ts'
import { rulesOf } from '../../../features/permissions/rules.ts'
import type { ToolAccess } from '../../../features/tools/index.ts'
import { pathRule } from '../../../features/tools-files/places.ts'
import { inEachDisguise } from '../../helpers/disguises.ts'
import { temporary } from '../tools/fakes.ts'

interface Case {
  readonly tool?: string
  readonly command?: string
  readonly path?: string
  readonly access?: 'read' | 'write' | 'readwrite'
  readonly mode?: PermissionMode
  readonly config?: Parameters<typeof rulesOf>[0]
  readonly remembered?: readonly Approval[]
  readonly uncertain?: boolean
  readonly shared?: boolean
  readonly unsure?: boolean
}

/** What the chain says of a call, for a working directory inside a git work tree (or not). */
async function chain(options: { readonly git?: boolean; readonly linked?: string } = {}) {
  const cwd = await temporary()
  if (options.git) {
    await mkdir(join(cwd, '.git'))
    await writeFile(join(cwd, '.git', 'HEAD'), 'ref: refs/heads/main\n')
  }
  if (options.linked) await writeFile(join(cwd, '.git'), `gitdir: ${options.linked}\n`)
  const judge = async (given: Case) => {
    const { tool = 'Bash', mode = 'manual', command, path } = given
    const accesses: ToolAccess[] =
      path === undefined ? [{ kind: 'exclusive' }] : [{ kind: given.access ?? 'write', path, shared: given.shared ?? false }]
    const opinion = await decide({
      tool,
      mode,
      rules: rulesOf(given.config ?? {}),
      remembered: given.remembered ?? [],
      cwd,
      home: '/srv/home',
      agent_dir: '/srv/home/sessions/a',
      workTree: () => findWorkTree(cwd),
      unsure: given.unsure ?? false,
      execution: {
        description: tool,
        accesses,
        ...(command === undefined ? {} : { approval_argument: command }),
        ...(path === undefined ? {} : pathRule({ path, real: path, cwd }, cwd)),
        uncertain: given.uncertain ?? false,
        run: async () => ({ output: '' })
      }
    })
    return opinion.kind
  }
  return { cwd, judge }
}

test('manual mode asks for commands and approves tools that only look', async () => {
  const { judge } = await chain()
  assert.equal(await judge({ command: 'ls' }), 'ask')
  assert.equal(await judge({ tool: 'mcp__x__y' }), 'ask')
  assert.equal(await judge({ tool: 'Read', path: '/etc/hosts', access: 'read' }), 'approve')
})

test('writing is approved below the working directory of a git work tree only', async () => {
  const watched = await chain({ git: true })
  assert.equal(await watched.judge({ tool: 'Write', path: join(watched.cwd, 'a/b.ts') }), 'approve')
  assert.equal(await watched.judge({ tool: 'Write', path: '/tmp/b.ts' }), 'ask')
  assert.equal(await watched.judge({ tool: 'Other', path: join(watched.cwd, 'b.ts') }), 'ask')
  assert.equal(await watched.judge({ tool: 'Write', path: join(watched.cwd, 'b.ts'), shared: true }), 'ask', 'a hard link')
  const plain = await chain()
  assert.equal(await plain.judge({ tool: 'Write', path: join(plain.cwd, 'b.ts') }), 'ask')
})

test('control files are asked for when they are written, those of git when they are touched', async () => {
  const { judge, cwd } = await chain({ git: true })
  await mkdir(join(cwd, 'bare'))
  await writeFile(join(cwd, 'bare/config'), '')
  await mkdir(join(cwd, 'parts/refs'), { recursive: true })
  const control = [
    ['.husky/pre-push', '.envrc', 'a/.ENVRC', '.vscode/settings.json', '.vscode/launch.json', '.vscode/tasks.json'],
    ['.mcp.json', 'sub/.MCP.json', '.svc-code/mcp.json', 'sub/.svc-code/mcp.json'],
    ['new/HEAD', 'bare/objects/a', 'bare/refs/heads/a', 'bare/hooks/a', 'parts/config', 'a/.git/config', 'a/.Git/x']
  ].flat()
  for (const path of control)
    for (const access of ['write', 'readwrite'] as const)
      assert.equal(await judge({ tool: 'Edit', mode: 'yolo', path: join(cwd, path), access }), 'ask', path)
  for (const path of ['.envrc', '.vscode/tasks.json', 'new/HEAD'])
    assert.equal(await judge({ tool: 'Read', path: join(cwd, path), access: 'read' }), 'approve')
  assert.equal(await judge({ tool: 'Read', path: join(cwd, '.git/config'), access: 'read' }), 'ask')
  for (const path of ['objects/a', 'lone/refs/a', '.vscode/extensions.json', 'settings.json', 'mcp.json', '.svc-code/agents/a.md'])
    assert.equal(await judge({ tool: 'Edit', mode: 'yolo', path: join(cwd, path) }), 'approve', path)
})

test('rules about files hold for the files that other tools touch, and an allowing rule comes before what is protected', async () => {
  const { judge, cwd } = await chain({ git: true })
  const deny = (pattern: string) => ({ rules: [{ decision: 'deny' as const, pattern, reason: 'no' }] })
  const path = join(cwd, 'src/a')
  assert.equal(await judge({ path, access: 'write', mode: 'auto', config: deny('Write(src/**)') }), 'deny')
  assert.equal(await judge({ path, access: 'read', mode: 'auto', config: deny('Read(src/**)') }), 'deny')
  assert.equal(await judge({ path, access: 'read', mode: 'auto', config: deny('Write(src/**)') }), 'approve')
  assert.equal(await judge({ path, access: 'read', mode: 'auto', config: deny('Read(!src/**)') }), 'approve')
  assert.equal(await judge({ path: '/etc/x', access: 'read', mode: 'auto', config: deny('Read(!src/**)') }), 'deny')
  assert.equal(await judge({ tool: 'Edit', path, access: 'readwrite', mode: 'auto', config: deny('Read(src/**)') }), 'approve')
  assert.equal(
    await judge({ tool: 'Edit', path, access: 'readwrite', mode: 'auto', config: deny('Write(src/**)') }),
    'approve',
    'Edit has rules of its own'
  )
  assert.equal(await judge({ path, mode: 'auto', unsure: true, config: deny('Write(src/**)') }), 'deny', 'also while others are unreadable')
  const allow = { rules: [{ decision: 'allow' as const, pattern: 'Write(.env)' }] }
  assert.equal(await judge({ tool: 'Write', path: join(cwd, '.env'), config: allow }), 'approve')
})

test('questions are asked where somebody answers, and a write that names no file is no write', async () => {
  const { judge, cwd } = await chain({ git: true })
  for (const mode of ['manual', 'yolo'] as const) assert.equal(await judge({ tool: 'AskUserQuestion', mode }), 'approve')
  assert.equal(await judge({ tool: 'Write' }), 'ask')
  assert.equal(await judge({ tool: 'Edit', path: join(cwd, 'a'), access: 'readwrite' }), 'approve')
  assert.equal(await judge({ tool: 'Edit', path: '/tmp/a', access: 'readwrite' }), 'ask')
  assert.equal(await judge({ tool: 'Edit', path: '/srv/home/sessions/a/plans/one.md', access: 'readwrite' }), 'approve')
})

test('a command that does not tell what it runs is asked for under a rule with a pattern, unless it was approved', async () => {
  const { judge } = await chain()
  const config = { deny: [{ tool: 'Bash', match: 'rm *' }] }
  for (const mode of ['manual', 'yolo', 'auto'] as const) {
    assert.equal(await judge({ command: '$x', uncertain: true, mode, config }), 'ask')
    assert.equal(await judge({ command: '$x', uncertain: true, mode, config, remembered: [{ tool: 'Bash', argument: '$x' }] }), 'approve')
    assert.equal(
      await judge({ command: '$x', uncertain: true, mode, config: { deny: [{ tool: 'Other', match: 'rm *' }] } }),
      mode === 'manual' ? 'ask' : 'approve'
    )
  }
})

test('an agent writes its own plans unasked, unless they have another name elsewhere', async () => {
  const { judge } = await chain()
  const path = '/srv/home/sessions/a/plans/one.md'
  assert.equal(await judge({ tool: 'Write', path }), 'approve')
  assert.equal(await judge({ tool: 'Write', path, shared: true }), 'ask')
  assert.equal(await judge({ tool: 'Write', path: '/srv/home/sessions/b/plans/one.md' }), 'ask')
})

test('yolo approves, but not rules, secrets and the files of git', async () => {
  const { judge, cwd } = await chain({ git: true })
  assert.equal(await judge({ mode: 'yolo', command: 'rm x' }), 'approve')
  assert.equal(await judge({ mode: 'yolo', command: 'rm x', config: { ask: [{ tool: 'Bash', match: 'rm *' }] } }), 'ask')
  assert.equal(await judge({ mode: 'yolo', tool: 'Write', path: join(cwd, '.env') }), 'ask')
  assert.equal(await judge({ mode: 'yolo', tool: 'Write', path: join(cwd, '.git/hooks/pre-commit') }), 'ask')
  assert.equal(await judge({ mode: 'yolo', tool: 'Write', path: join(cwd, 'src/.GIT/config') }), 'ask')
})

test('auto approves all but deny rules, and questions', async () => {
  const { judge } = await chain()
  assert.equal(await judge({ mode: 'auto', command: 'rm x', config: { ask: [{ tool: 'Bash' }] } }), 'approve')
  assert.equal(await judge({ mode: 'auto', command: 'rm x', config: { deny: [{ tool: 'Bash', pattern: 'rm *' }] } }), 'deny')
  assert.equal(await judge({ mode: 'auto', tool: 'AskUserQuestion' }), 'deny')
})

test('deny comes before what was remembered, remembered before ask, ask before allow', async () => {
  const { judge } = await chain()
  const remembered = [{ tool: 'Bash', argument: 'ls' }]
  assert.equal(await judge({ command: 'ls', remembered }), 'approve')
  assert.equal(await judge({ command: 'ls -a', remembered }), 'ask')
  assert.equal(await judge({ tool: 'Other', command: 'ls', remembered }), 'ask', 'another tool')
  for (const mode of ['manual', 'yolo', 'auto'] as const)
    assert.equal(await judge({ command: 'ls', remembered, mode, unsure: true }), 'ask', `unreadable rules, ${mode}`)
  assert.equal(await judge({ command: 'ls', remembered, config: { ask: [{ tool: 'Bash' }] } }), 'approve')
  assert.equal(await judge({ command: 'ls', remembered, config: { deny: [{ tool: 'B*' }] } }), 'deny')
  const both = { allow: [{ tool: 'Bash', match: 'ls*' }], ask: [{ tool: 'Bash', match: '* -a' }] }
  assert.equal(await judge({ command: 'ls', config: both }), 'approve')
  assert.equal(await judge({ command: 'ls -a', config: both }), 'ask')
})

test('rule patterns: names, arguments, negation, empty parentheses, and tools without a matcher', async () => {
  const { judge } = await chain()
  const allow = (pattern: string) => ({ rules: [{ decision: 'allow' as const, pattern }] })
  assert.equal(await judge({ command: 'make (all)', config: allow('Bash(make (all))') }), 'approve')
  assert.equal(await judge({ command: 'ls', config: allow('Bash()') }), 'approve')
  assert.equal(await judge({ command: 'ls', config: allow('Bash(!git *)') }), 'approve')
  assert.equal(await judge({ command: 'git push', config: allow('Bash(!git *)') }), 'ask')
  assert.equal(await judge({ tool: 'mcp__x__y', config: allow('mcp__x__*') }), 'approve')
  assert.equal(await judge({ tool: 'mcp__x__y', config: allow('mcp__x__*(a)') }), 'ask')
  assert.equal(await judge({ tool: 'Write', path: '/tmp/a.txt', config: allow('Write(/TMP/*)') }), 'approve')
  const scoped = { rules: [{ decision: 'allow' as const, pattern: 'Bash', scope: 'session-runtime' as const }] }
  assert.equal(await judge({ command: 'ls', config: scoped }), 'ask')
})

test('the directory that a work tree is linked to is its control directory, whatever it is called', async () => {
  const store = await temporary()
  await writeFile(join(store, 'HEAD'), 'ref: refs/heads/w\n')
  const { judge } = await chain({ linked: store })
  assert.equal(await judge({ tool: 'Edit', mode: 'yolo', path: join(store, 'info/exclude') }), 'ask')
  const elsewhere = await chain({ git: true })
  assert.equal(await elsewhere.judge({ tool: 'Edit', mode: 'yolo', path: join(store, 'info/exclude') }), 'approve')
})

test('a linked work tree protects the control directory it points to', async () => {
  const { cwd } = await chain({ git: true })
  const linked = await temporary()
  const control = join(cwd, '.git', 'worktrees', 'w')
  await mkdir(control, { recursive: true })
  await writeFile(join(control, 'HEAD'), 'ref: refs/heads/w\n')
  await writeFile(join(control, 'commondir'), '../..\n')
  await writeFile(join(linked, '.git'), `gitdir: ${control}\n`)
  for (const text of ['gitdir: /nowhere\n', 'x\n', `gitdir: ${control}\n${'#'.repeat(5000)}`]) {
    const other = await temporary()
    await writeFile(join(other, '.git'), text)
    assert.equal(await findWorkTree(other), undefined, text.slice(0, 20))
  }
  await inEachDisguise(join(control, 'commondir'), async what =>
    assert.deepEqual(await findWorkTree(linked), { root: await realpath(linked), control: [control] }, what)
  )
  await writeFile(join(control, 'commondir'), '../..\n')
  const hollow = await temporary()
  await mkdir(join(hollow, '.git'))
  assert.equal(await findWorkTree(hollow), undefined, 'without HEAD')
  assert.deepEqual(await findWorkTree(join(linked)), { root: await realpath(linked), control: [control, join(cwd, '.git')] })
})
