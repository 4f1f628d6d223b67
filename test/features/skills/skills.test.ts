import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { TurnHooks } from '../../../features/agent/index.ts'
import config from '../../../features/config/pack.ts'
import files from '../../../features/files/pack.ts'
import interactions from '../../../features/interactions/pack.ts'
import media from '../../../features/media/pack.ts'
import { listMessages } from '../../../features/messages/index.ts'
import permissions from '../../../features/permissions/pack.ts'
import { listPrompts, steerPrompts, submitPrompt } from '../../../features/prompts/index.ts'
import { readSession } from '../../../features/sessions/index.ts'
import { SkillCatalog } from '../../../features/skills/catalog.ts'
import { activateSkill, listSessionSkills, listWorkspaceSkills, SkillSources } from '../../../features/skills/index.ts'
import skills from '../../../features/skills/pack.ts'
import { scanSkills } from '../../../features/skills/skill-files.ts'
import tools from '../../../features/tools/pack.ts'
import { readTranscript, readUserMessages } from '../../../features/transcript/index.ts'
import transcript from '../../../features/transcript/pack.ts'
import { undoSession } from '../../../features/undo/index.ts'
import undo from '../../../features/undo/pack.ts'
import { type Accounts, definePack, type Logger, type Pack } from '../../../kernel/index.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { latch } from '../../helpers/latch.ts'
import { type ScriptedLlm, scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { type Started, startAgent } from '../agent/start.ts'

const packs = [tools, interactions, permissions, undo, skills]

interface Scene extends Started {
  skill(path: string, text: string): Promise<string>
  activate(skill_name: string, body?: { args?: string; attachments?: never[] }): Promise<{ code: number; msg: string; data: unknown }>
  names(): Promise<string[]>
  of(type: string): Record<string, unknown>[]
}

const front = (name: string, more = '') => `---\nname: ${name}\ndescription: Does ${name}\n${more}---\n`

/** `toml`: the user's configuration; default: there is no pack for it. */
async function start(
  t: TestContextLike,
  llm: ScriptedLlm = scriptedLlm('ok', 'ok', 'ok', 'ok'),
  toml?: string,
  more: readonly Pack[] = []
): Promise<Scene> {
  const home = await freshDir()
  if (toml !== undefined) await writeFile(join(home, 'config.toml'), toml, { mode: 0o600 })
  const scene = await startAgent(t, llm, { home, packs: [...(toml === undefined ? [] : [config]), ...packs, ...more] })
  const params = { session_id: scene.session_id }
  await mkdir(join(scene.cwd, '.git'))
  return {
    ...scene,
    async skill(path, text) {
      const file = join(scene.cwd, path)
      await mkdir(dirname(file), { recursive: true })
      await writeFile(file, text)
      return file
    },
    activate: (skill_name, body = {}) => scene.call(activateSkill, { params: { ...params, skill_name }, body }),
    names: async () => (await scene.call(listSessionSkills, { params })).data.skills.map(({ name }) => name),
    of: type => scene.events.filter(event => event.type === type).map(event => event.payload as Record<string, unknown>)
  }
}

test('skills of the project, of the home and those built in are listed by name, and the most specific of one name counts', async t => {
  const scene = await start(t)
  const path = await scene.skill(
    '.svc-code/skills/deploy/SKILL.md',
    `${front('Deploy', 'type: inline\ndisable-model-invocation: true\n')}Do it.`
  )
  await scene.skill('.agents/skills/deploy/SKILL.md', `${front('deploy')}Another.`)
  await scene.skill('.agents/skills/flat.md', '\n# Flat one\nBody')
  await scene.skill('.agents/skills/node_modules/x/SKILL.md', front('hidden'))
  await scene.skill('.agents/skills/broken/SKILL.md', 'no front matter')
  await scene.skill('.agents/skills/guide/SKILL.md', front('guide', 'type: reference\nhas-sub-skill: true\n'))
  await scene.skill('.agents/skills/guide/more/part/SKILL.md', front('part'))
  await mkdir(join(scene.home, 'skills'))
  await writeFile(join(scene.home, 'skills', 'mine.md'), 'About mine')
  const { data } = await scene.call(listSessionSkills, { params: { session_id: scene.session_id } })
  assert.deepEqual(
    data.skills.map(({ name, source }) => `${name} ${source}`),
    [
      'Deploy project',
      'flat project',
      'guide project',
      'guide.part project',
      'mine user',
      'write-instructions builtin',
      'write-skill builtin'
    ]
  )
  assert.deepEqual(data.skills[0], {
    name: 'Deploy',
    description: 'Does Deploy',
    path,
    source: 'project',
    type: 'inline',
    disable_model_invocation: true
  })
  assert.equal(data.skills[1]?.description, 'Flat one')
  assert.equal(data.skills[5]?.path, 'builtin://write-instructions')
  const { workspace_id } = (await scene.call(readSession, { params: { session_id: scene.session_id } })).data
  assert.deepEqual((await scene.call(listWorkspaceSkills, { params: { workspace_id } })).data, data)
  assert.equal((await scene.call(listWorkspaceSkills, { params: { workspace_id: 'wd_none_0123456789ab' } })).code, 40410)
  assert.equal((await scene.call(listWorkspaceSkills, { params: { workspace_id: 'wd_none' } })).code, 40001)
  assert.equal((await scene.call(listSessionSkills, { params: { session_id: 'session_none' } })).code, 40401)
})

test('places that are not to be merged count as far as the first that is there, of the project and of the user; others besides', async t => {
  const scene = await start(t, undefined, 'merge_all_available_skills = false\nextra_skill_dirs = ["more"]\n')
  await scene.skill('.svc-code/skills/first/SKILL.md', front('first'))
  await scene.skill('.agents/skills/second/SKILL.md', front('second'))
  await scene.skill('more/third/SKILL.md', front('third'))
  await mkdir(join(scene.home, 'skills'))
  await writeFile(join(scene.home, 'skills', 'mine.md'), 'About mine')
  const builtin = ['write-instructions', 'write-skill']
  assert.deepEqual(await scene.names(), ['first', 'mine', 'third', ...builtin])
  await rm(join(scene.cwd, '.svc-code', 'skills'), { recursive: true })
  assert.deepEqual(await scene.names(), ['mine', 'second', 'third', ...builtin])
})

test('a skill that comes, changes or goes is seen by the next look', async t => {
  const scene = await start(t)
  const builtin = ['write-instructions', 'write-skill']
  assert.deepEqual(await scene.names(), builtin)
  const file = await scene.skill('.svc-code/skills/a/SKILL.md', front('a'))
  assert.deepEqual(await scene.names(), ['a', ...builtin])
  await writeFile(file, front('renamed'))
  assert.deepEqual(await scene.names(), ['renamed', ...builtin])
  await rm(dirname(file), { recursive: true })
  assert.deepEqual(await scene.names(), builtin)
})

test('links that go round end, and a skill that is larger than it may be is none', async t => {
  const scene = await start(t)
  await scene.skill('.svc-code/skills/big/SKILL.md', front('big') + 'x'.repeat(600 * 1024))
  await scene.skill('.svc-code/skills/group/a/SKILL.md', front('a'))
  await symlink(join(scene.cwd, '.svc-code', 'skills'), join(scene.cwd, '.svc-code', 'skills', 'group', 'round'))
  assert.ok((await scene.names()).includes('a'))
  assert.ok(!(await scene.names()).includes('big'))
})

test('a directory to which links lead again is looked through once', async () => {
  const origin = { source: 'project' } as const
  const root = await freshDir()
  for (const name of ['a', 'b']) {
    await mkdir(join(root, name))
    await writeFile(join(root, name, 'SKILL.md'), front(name))
  }
  for (const link of ['l1', 'l2', 'z']) await symlink(root, join(root, link))
  await symlink(join(root, 'b'), join(root, 'again'))
  const { skills: found, visited } = await scanSkills(root, origin, await freshDir())
  assert.deepEqual(found.map(({ name }) => name).sort(), ['a', 'b'])
  assert.ok(visited.size < 10, [...visited.keys()].join('\n'))
})

test('a skill that comes while its directory is looked through is found by the next look', async () => {
  const cwd = await freshDir()
  const dir = join(cwd, '.svc-code', 'skills')
  await mkdir(join(dir, 'broken'), { recursive: true })
  await writeFile(join(dir, 'broken', 'SKILL.md'), 'nothing of what a skill needs')
  const looked = () => writeFileSync(join(dir, 'late.md'), front('late')) // told of what is broken, behind the look at its directory
  const catalog = new SkillCatalog({
    home: await freshDir(),
    userHome: await freshDir(),
    log: { warn: looked } as unknown as Logger,
    settings: () => ({ extra: [], merge: true, builtin: false }),
    sources: () => [],
    accounts: {} as Accounts
  })
  assert.deepEqual(await catalog.list(cwd), [])
  assert.deepEqual(
    (await catalog.list(cwd)).map(({ name }) => name),
    ['late']
  )
})

test('a link is no skill when it leads to a file that is off limits for tools', async t => {
  const scene = await start(t)
  const builtin = ['write-instructions', 'write-skill']
  const key = await scene.skill('keys/id_rsa', 'KEY')
  await mkdir(join(scene.cwd, '.svc-code/skills/b'), { recursive: true })
  await symlink(key, join(scene.cwd, '.svc-code/skills/a.md'))
  await symlink(await scene.skill('keys/.env', front('b')), join(scene.cwd, '.svc-code/skills/b/SKILL.md'))
  assert.deepEqual(await scene.names(), builtin)
  await symlink(await scene.skill('docs/c.md', 'Read this.'), join(scene.cwd, '.svc-code/skills/c.md'))
  assert.deepEqual(await scene.names(), ['c', ...builtin])
})

test('of a place that holds a whole disk the first directories are looked through, and skills of other places are there all the same', async t => {
  const scene = await start(t)
  await scene.skill('.svc-code/skills/first/SKILL.md', front('first'))
  const dirs = Array.from({ length: 2100 }, (_, n) => join(scene.cwd, '.svc-code', 'skills', 'pile', `d${10_000 + n}`))
  await mkdir(dirname(dirs[0]!))
  for (const dir of dirs) mkdirSync(dir)
  await scene.skill('.svc-code/skills/pile/zzz/SKILL.md', front('behind'))
  await scene.skill('.agents/skills/other/SKILL.md', front('other'))
  await scene.skill('.svc-code/skills/short.md', front('short'))
  const names = await scene.names()
  for (const name of ['first', 'other', 'short']) assert.ok(names.includes(name), name)
  assert.equal(names.includes('behind'), false)
})

test('an activation runs a turn with the text of the skill, its arguments filled in, and is told just before the turn', async t => {
  const llm = scriptedLlm('done')
  const scene = await start(t, llm)
  const path = await scene.skill(
    '.svc-code/skills/greet/SKILL.md',
    `${front('greet', 'arguments: [who, how]\n')}Greet $who $how. First: $0. All: $ARGUMENTS. Cost: $price. In \${SVC_SKILL_DIR}.`
  )
  assert.deepEqual((await scene.activate('GREET', { args: '"Ann & Bob" warmly' })).data, { activated: true, skill_name: 'greet' })
  await scene.settled(1)
  const sent = JSON.stringify(llm.requests[0]?.messages)
  assert.match(sent, /Greet Ann & Bob warmly\. First: Ann & Bob\. All: \\"Ann & Bob\\" warmly\. Cost: \$price\./)
  assert.ok(sent.includes(`In ${dirname(path)}.`))
  const [activated] = scene.of('skill.activated')
  const { activationId, ...facts } = activated ?? {}
  assert.ok(activationId)
  assert.deepEqual(facts, {
    skillName: 'greet',
    skillArgs: '"Ann & Bob" warmly',
    trigger: 'user-slash',
    skillType: 'prompt',
    skillPath: path,
    skillSource: 'project'
  })
  const order = scene.events.map(({ type }) => type).filter(type => ['skill.activated', 'turn.started', 'prompt.completed'].includes(type))
  assert.deepEqual(order, ['skill.activated', 'turn.started', 'prompt.completed'])
  const [turn] = scene.of('turn.started')
  assert.deepEqual(turn?.origin, { kind: 'skill_activation', ...activated })
  const session = (await scene.call(readSession, { params: { session_id: scene.session_id } })).data
  assert.equal(session.last_prompt, '/greet "Ann & Bob" warmly')
  assert.equal(session.title, '/greet "Ann & Bob" warmly')
  const undone = await scene.call(undoSession, { params: { session_id: scene.session_id }, body: {} })
  assert.deepEqual([undone.code, undone.data.messages.items.length], [0, 0])
})

test('a skill that a hook blocks is told as not activated, whether it was to begin a turn or to join one', async t => {
  const guard = definePack({
    name: 'guard',
    needs: { hooks: TurnHooks },
    setup: (ctx, { hooks }) =>
      ctx.tap(hooks.beforePrompt, ({ origin }) => (origin.kind === 'user' ? undefined : { event: 'Guard', reason: 'no' }))
  })
  const held = latch()
  t.after(() => held.open())
  const scene = await start(
    t,
    scriptedLlm([
      { type: 'wait', until: held.opened },
      { type: 'text', text: 'ok' }
    ]),
    undefined,
    [guard]
  )
  await scene.skill('.svc-code/skills/greet.md', 'Greet.')
  const blocked = { activated: false, skill_name: 'greet' }
  assert.deepEqual((await scene.activate('greet')).data, blocked)
  await scene.prompt('one')
  assert.deepEqual((await scene.activate('greet')).data, blocked)
})

test('a skill that the user called is the last prompt again when what came behind it was taken back', async t => {
  const scene = await start(t)
  await scene.skill('.svc-code/skills/greet.md', 'Greet.')
  await scene.prompt('one')
  await scene.settled(1)
  assert.equal((await scene.activate('greet', { args: 'Ann' })).code, 0)
  await scene.settled(2)
  await scene.prompt('two')
  await scene.settled(3)

  const params = { session_id: scene.session_id }
  assert.equal((await scene.call(undoSession, { params, body: {} })).code, 0)

  assert.equal((await scene.call(readSession, { params })).data.last_prompt, '/greet Ann')
})

test('names of arguments that stand side by side, and others that begin like them, are told apart', async t => {
  const llm = scriptedLlm('done')
  const scene = await start(t, llm)
  await scene.skill('.svc-code/skills/make.md', '---\narguments: file, mode file-kind\n---\n$file-$mode.ts $file-kind $files $file-x')
  await scene.activate('make', { args: 'a b c' })
  await scene.settled(1)
  assert.match(JSON.stringify(llm.requests[0]?.messages), /\\na-b\.ts c \$files a-x\\n/)
})

test('a name may hold blanks, colons and slashes, and blanks may follow the line above the front matter', async t => {
  const scene = await start(t)
  const named = ['My Skill', 'ns:thing', 'a/b']
  for (const [n, name] of named.entries()) await scene.skill(`.svc-code/skills/${n}/SKILL.md`, front(name).replace('---', '---  '))
  assert.deepEqual(await scene.names(), ['a/b', 'My Skill', 'ns:thing', 'write-instructions', 'write-skill'])
  for (const [n, name] of named.entries()) {
    assert.deepEqual((await scene.activate(name)).data, { activated: true, skill_name: name })
    await scene.settled(n + 1)
  }
})

test('what a skill says that YAML has no tag for is no warning of the process', async t => {
  const warned: Error[] = []
  const listen = (warning: Error) => warned.push(warning)
  process.on('warning', listen)
  t.after(() => process.off('warning', listen))
  const scene = await start(t)
  await scene.skill('.svc-code/skills/loud/SKILL.md', '---\nname: loud\ndescription: !important do it\n---\n')
  assert.ok((await scene.names()).includes('loud'))
  assert.deepEqual(warned, [])
})

test('arguments that the text does not take follow it', async t => {
  const llm = scriptedLlm('done')
  const scene = await start(t, llm)
  await scene.skill('.svc-code/skills/plain.md', 'Just do it.')
  await scene.activate('plain', { args: '<now>' })
  await scene.settled(1)
  assert.match(JSON.stringify(llm.requests[0]?.messages), /Just do it\.\\n\\nARGUMENTS: &lt;now&gt;/)
})

test('an attachment that is none is named where the request has it', async t => {
  const scene = await startAgent(t, scriptedLlm('ok'), { packs: [...packs, files, media] })
  const source = { kind: 'base64', media_type: 'image/png', data: '!!!' }
  const path = `/api/v1/sessions/${scene.session_id}/skills/write-skill:activate`
  const { code, details } = await scene.rest.json('POST', path, { attachments: [{ type: 'image', source }] })
  assert.deepEqual([code, details?.[0]?.path], [40001, 'body.attachments.0.source.data'])
})

test('what cannot be activated answers with its code, and nothing runs', async t => {
  const scene = await start(t)
  await scene.skill('.svc-code/skills/book/SKILL.md', front('Book', 'type: reference\n'))
  assert.equal((await scene.activate('nothing')).code, 40415)
  assert.equal((await scene.activate('book')).code, 40912)
  assert.equal((await scene.activate('BOOK')).code, 40912) // case does not matter
  const params = { session_id: scene.session_id }
  const content = [{ type: 'text' as const, text: 'hi' }]
  for (const [name, code] of [
    ['nothing', 40415],
    ['book', 40912]
  ] as const) {
    assert.equal((await scene.call(submitPrompt, { params, body: { content, skills: [{ name }] } })).code, code)
  }
  assert.equal(
    (await scene.call(submitPrompt, { params, body: { content, prompt_id: 'p', skills: [{ name: 'write-skill' }] } })).code,
    40001
  )
  const file = { type: 'image', source: { kind: 'file', file_id: 'f_none' } } as const
  const with_file = await scene.call(activateSkill, { params: { ...params, skill_name: 'write-skill' }, body: { attachments: [file] } })
  assert.equal(with_file.code, 40407)
  assert.deepEqual(scene.of('turn.started'), [])
  assert.deepEqual((await scene.call(listPrompts, { params })).data, { active: null, queued: [] })
})

test('a skill that is activated while a turn runs joins it', async t => {
  const gate = latch()
  const llm = scriptedLlm(
    [
      { type: 'wait', until: gate.opened },
      { type: 'text', text: 'first' },
      { type: 'finish', reason: 'completed' }
    ],
    'second'
  )
  const scene = await start(t, llm)
  await scene.skill('.svc-code/skills/late.md', 'Late words.')
  await scene.prompt('go')
  await scene.waitFor(event => event.type === 'turn.step.started')
  assert.equal((await scene.activate('late')).code, 0)
  gate.open()
  await scene.settled(1)
  assert.match(JSON.stringify(llm.requests[1]?.messages), /Late words/)
  assert.equal(scene.of('turn.started').length, 1)
  assert.equal(scene.of('skill.activated').length, 1)
})

test('skills of a prompt stand in front of it, and the prompt is told without them', async t => {
  const llm = scriptedLlm('done')
  const scene = await start(t, llm)
  await scene.skill('.svc-code/skills/one.md', 'Words of one $0.')
  await scene.skill('.svc-code/skills/two.md', 'Words of two.')
  const params = { session_id: scene.session_id }
  const body = { content: [{ type: 'text' as const, text: 'my own text' }], skills: [{ name: 'one', args: 'x' }, { name: 'two' }] }
  assert.equal((await scene.call(submitPrompt, { params, body })).code, 0)
  await scene.settled(1)
  assert.match(JSON.stringify(llm.requests[0]?.messages), /Words of one x[\s\S]*Words of two[\s\S]*my own text/)
  const [turn] = scene.of('turn.started')
  assert.equal(turn?.prompt, 'my own text')
  assert.ok(turn)
  const { kind, skillActivations } = turn.origin as { kind: string; skillActivations: { skillName: string; activationId: string }[] }
  assert.deepEqual([kind, skillActivations.map(each => each.skillName)], ['user', ['one', 'two']])
  assert.deepEqual(
    scene.of('skill.activated').map(({ skillName, trigger, activationId }) => [skillName, trigger, activationId]),
    skillActivations.map(({ skillName, activationId }) => [skillName, 'user-slash', activationId])
  )
  assert.equal((await scene.call(readSession, { params })).data.last_prompt, 'my own text')
})

test('who is told of a prompt hears what its user sent: no words of skills, and a skill by its call', async t => {
  const gate = latch()
  const llm = scriptedLlm(
    [
      { type: 'wait', until: gate.opened },
      { type: 'text', text: 'first' },
      { type: 'finish', reason: 'completed' }
    ],
    'second',
    'third'
  )
  const scene = await startAgent(t, llm, { packs: [...packs, transcript] })
  await mkdir(join(scene.cwd, '.svc-code/skills'), { recursive: true })
  await writeFile(join(scene.cwd, '.svc-code/skills/one.md'), 'Words of $0.')
  const params = { session_id: scene.session_id }
  const text = (words: string) => [{ type: 'text' as const, text: words }]
  const submit = async (words: string) =>
    (await scene.call(submitPrompt, { params, body: { content: text(words), skills: [{ name: 'one', args: 'x' }] } })).data
  assert.equal((await scene.call(activateSkill, { params: { ...params, skill_name: 'one' }, body: { args: 'y z' } })).code, 0)
  const [queued, steered] = [await submit('mine'), await submit('steered')]
  const { active, queued: waiting } = (await scene.call(listPrompts, { params })).data
  await scene.call(steerPrompts, { params, body: { prompt_ids: [steered.prompt_id] } })
  gate.open()
  await scene.settled(2)

  const of = (type: string) =>
    scene.events.filter(event => event.type === type).map(event => (event.payload as Record<string, unknown>).content)
  assert.deepEqual([queued.content, steered.content], [text('mine'), text('steered')])
  assert.deepEqual(
    [active, ...waiting].map(prompt => prompt?.content),
    [text('/one y z'), text('mine'), text('steered')]
  )
  assert.deepEqual(of('prompt.submitted'), [...['/one y z', 'mine', 'steered'], ...['steered', 'mine']].map(text))
  assert.deepEqual(of('prompt.queued'), [text('mine'), text('steered')])
  assert.deepEqual(of('prompt.steered'), [text('steered')])
  const { prompts } = (await scene.call(readTranscript, { params, query: { agent_id: 'main' } })).data
  assert.deepEqual(
    prompts.map(({ content }) => content),
    [text('/one y z'), text('mine'), text('steered')]
  )
  assert.match(JSON.stringify(llm.requests), /Words of y[\s\S]*Words of x/)
})

test('the transcript shows a prompt without the skills that ride in front of it', async t => {
  const llm = scriptedLlm('done')
  const scene = await startAgent(t, llm, { packs: [...packs, transcript] })
  await mkdir(join(scene.cwd, '.svc-code/skills'), { recursive: true })
  await writeFile(join(scene.cwd, '.svc-code/skills/one.md'), 'Words of one.')
  const params = { session_id: scene.session_id }
  const body = { content: [{ type: 'text' as const, text: 'my own text' }], skills: [{ name: 'one' }] }
  assert.equal((await scene.call(submitPrompt, { params, body })).code, 0)
  await scene.settled(1)
  const { items } = (await scene.call(readTranscript, { params, query: { agent_id: 'main' } })).data
  assert.deepEqual(
    items.map(item => (item.kind === 'turn' ? item.prompt : item.kind === 'marker' ? item.marker : item.kind)),
    ['my own text', 'skill']
  )
  const { agents } = (await scene.call(readUserMessages, { params, query: {} })).data
  assert.deepEqual(
    agents.flatMap(({ messages }) => messages.map(({ prompt }) => prompt)),
    ['my own text']
  )
})

test('the model sees which skills there are, loads one by its tool, and reads it with the next step', async t => {
  const llm = scriptedLlm(
    toolCalls({ id: 'c1', name: 'Skill', args: { skill: 'help', args: 'now' } }),
    toolCalls({ id: 'c2', name: 'Skill', args: { skill: 'flow' } }, { id: 'c3', name: 'Skill', args: { skill: 'none' } }),
    'done'
  )
  const scene = await start(t, llm)
  await scene.skill('.svc-code/skills/help/SKILL.md', `${front('help', 'whenToUse: when stuck\n')}Help $0.`)
  await scene.skill('.svc-code/skills/flow/SKILL.md', front('flow', 'type: flow\n'))
  await scene.skill('.svc-code/skills/secret/SKILL.md', front('secret', 'disable_model_invocation: true\n'))
  await scene.prompt('go')
  await scene.settled(1)
  const system = JSON.stringify(llm.requests[0]?.system)
  assert.match(system, /- help: Does help\\n {2}When to use: when stuck\\n {2}Path: /)
  assert.doesNotMatch(system, /- (flow|secret):/)
  assert.match(JSON.stringify(llm.requests[1]?.messages), /loaded inline[\s\S]*skill-loaded name=\\\\?\\?"help[\s\S]*Help now\./)
  const results = scene.of('tool.result').map(({ toolCallId, isError, output }) => [toolCallId, isError ?? false, output])
  assert.deepEqual(
    results.map(([id, failed]) => [id, failed]),
    [
      ['c1', false],
      ['c2', true],
      ['c3', true]
    ]
  )
  assert.match(String(results[1]?.[2]), /not for you to load/)
  assert.match(String(results[2]?.[2]), /no skill "none". Known: .*help/)
  assert.deepEqual(
    scene.of('skill.activated').map(({ skillName, trigger }) => [skillName, trigger]),
    [['help', 'model-tool']]
  )
  const { display } = scene.of('tool.call.started')[0] ?? {}
  assert.deepEqual(display, { kind: 'skill_call', skill_name: 'help', args: 'now' })
  const { data } = await scene.call(listMessages, { params: { session_id: scene.session_id } })
  assert.ok(data.items.some(({ metadata }) => (metadata as { origin?: { kind: string } })?.origin?.kind === 'skill_activation'))
})

test('a skill that makes the model load it again and again is loaded three times in a turn', async t => {
  const call = (id: string) => toolCalls({ id, name: 'Skill', args: { skill: 'again' } })
  const scene = await start(t, scriptedLlm(call('a'), call('b'), call('c'), call('d'), 'done'))
  await scene.skill('.svc-code/skills/again.md', 'Load the skill again.')
  await scene.prompt('go')
  await scene.settled(1)
  assert.deepEqual(
    scene.of('tool.result').map(({ isError }) => isError ?? false),
    [false, false, false, true]
  )
  assert.deepEqual(
    scene.of('skill.activated').map(({ trigger }) => trigger),
    ['model-tool', 'nested-skill', 'nested-skill']
  )
})

test('skills that call each other are loaded three deep, whatever the path, and others as often as they are needed', async t => {
  const load = (skill: string, args?: string) => ({ id: `${skill}${serial++}`, name: 'Skill', args: { skill, ...(args ? { args } : {}) } })
  const scene = await start(
    t,
    scriptedLlm(
      toolCalls(load('a'), load('lone')), // read together: none calls the other
      toolCalls(load('b')),
      toolCalls(load('c')),
      toolCalls(load('d'), load('a')), // both the fourth of their chains
      toolCalls(load('lone', '1')),
      toolCalls(load('lone', '2')),
      toolCalls(load('lone', '3')),
      toolCalls(load('lone', '4')),
      toolCalls(load('e')),
      toolCalls(load('d')), // of another chain
      'done'
    )
  )
  const texts = { a: 'Then /b.', b: 'Load the skill C.', c: 'Go on with d or a.', d: 'Do it.', e: 'Use "d".', lone: 'Not b-side, nor d.e.' }
  for (const [name, text] of Object.entries(texts)) await scene.skill(`.svc-code/skills/${name}/SKILL.md`, `${front(name)}${text}`)
  await scene.prompt('go')
  await scene.settled(1)

  const results = scene.of('tool.result').map(({ isError, output }) => (isError ? /\((.*)\)/.exec(String(output))?.[1] : 'loaded'))
  assert.deepEqual(results, [...Array(4).fill('loaded'), 'a > b > c > d', 'a > b > c > a', ...Array(6).fill('loaded')])
})
let serial = 0

test('who may not use the tool is not told of skills', async t => {
  const llm = scriptedLlm('done')
  const scene = await start(t, llm)
  await scene.skill('.svc-code/skills/help.md', 'Help.')
  await scene.prompt('go', { disabled_tools: ['Skill'] })
  await scene.settled(1)
  assert.doesNotMatch(JSON.stringify(llm.requests[0]?.system), /- help:/)
})

test('places of a pack that fail are its fault, and the other skills are there', async t => {
  const scene = await start(t)
  const bad = definePack({
    name: 'bad',
    setup(ctx) {
      ctx.contribute(SkillSources, {
        name: 'bad',
        places: () => {
          throw new Error('no places')
        }
      })
    }
  })
  await scene.kernel.load(bad)

  assert.ok((await scene.names()).includes('write-skill'))
  const faults = scene.kernel.features().find(({ name }) => name === 'bad')?.meta.faults as { last: string } | undefined
  assert.equal(faults?.last, 'skill source bad: no places')
})
