/** A process that dies between a record and its event: wherever the events stop, the next start tells the rest, exactly once. */
import assert from 'node:assert/strict'
import { appendFile, cp, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { TurnHooks } from '../../features/agent/index.ts'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { definePack } from '../../kernel/index.ts'
import { type Frame, startTestKernel, type TestKernel } from '../../kernel/testing.ts'
import { copyOfHome } from '../features/agent/start.ts'
import { busyModel } from '../helpers/busy-model.ts'
import { CrashClient, newLedger, newNote } from '../helpers/crash-client.ts'
import { journal, judgeEvents } from '../helpers/crash-judge.ts'
import { crashScene } from '../helpers/crash-scene.ts'
import { orderFaults } from '../helpers/event-order.ts'
import { eventFile, journalsOf, tellingJudge } from '../helpers/record-events.ts'
import { freshDir } from '../helpers/temp.ts'

test('events that stop anywhere in a turn, with approved calls or without, are completed at the next start', async t => {
  const { home, place } = await crashScene(t)
  const packs = await loadDefaultPacks()
  const prompts = new Map<string, string>()
  let id = ''
  let told = 1
  for (const text of ['tools', 'talk', 'tools']) {
    const kernel = await startTestKernel(t, { packs, home })
    if (id === '') id = ((await kernel.rest.json('POST', '/api/v1/sessions', { metadata: { cwd: place } })).data as { id: string }).id
    approveAll(kernel, id)
    prompts.set(await talk(kernel, id, text), text)
    await kernel.stop()
    const lines = (await readFile(eventsOf(home, id), 'utf8')).trimEnd().split('\n')
    for (let kept = told + 1; kept <= lines.length; kept++) {
      const copy = join(await freshDir(), 'home')
      await cp(home, copy, { recursive: true })
      await writeFile(eventsOf(copy, id), `${lines.slice(0, kept).join('\n')}\n`)
      const events = await reopened(t, packs, copy, id)
      const known = new Map(lines.slice(1, kept).map((line, at) => [at + 1, line]))
      const note = { ...newNote(id, ''), prompts, events: known }
      assert.deepEqual(
        [...judgeEvents(events, note), ...orderFaults(events)],
        [],
        `${text}: with ${kept - 1} of ${lines.length - 1} events`
      )
      if (kept === lines.length) assert.equal(events.length, lines.length - 1)
    }
    told = lines.length
  }
})

test('work that ended beside the main agent is told at the next start when it was not, and not again when it was', async t => {
  const scene = await crashScene(t, { model: busyModel, toml: 'default_permission_mode = "yolo"' })
  const packs = await loadDefaultPacks()
  const judge = await tellingJudge(t)
  const kernel = await startTestKernel(t, { packs, home: scene.home })
  const client = new CrashClient(kernel.url, kernel.token, newLedger())
  t.after(() => client.rest.close())
  const socket = await client.connect(kernel.url, kernel.token, [])
  const { id } = await client.session(scene.place, 'background')
  const over = async (script: string, turn: number) => {
    await client.prompt(newNote(id, ''), `do:${script}:part${turn}`)
    await socket.next(({ type, payload }) => type === 'turn.ended' && payload.turnId === turn && payload.agentId === 'main')
    await socket.next(({ type, payload, seq = 0 }) => type === 'event.session.work_changed' && !payload.main_turn_active && seq > turn * 9)
  }
  /** What the next process tells of the session's work, when this one dies now. */
  const next = async (change?: (home: string) => Promise<void>) => {
    const home = await copyOfHome(scene.home)
    await change?.(home)
    const before = await eventFile(home, id)
    const again = await startTestKernel(t, { packs, home })
    await again.rest.json('GET', `/api/v1/sessions/${id}/snapshot`)
    // Archiving waits until all agents were looked at.
    await again.rest.json('POST', `/api/v1/sessions/${id}:archive`, {})
    await again.stop()
    assert.deepEqual(await judge(home, id), [])
    const told = (await eventFile(home, id)).slice(before.length).filter(({ type }) => type === 'event.session.work_changed')
    return told.map(({ payload }) => payload.busy as boolean)
  }

  await over('agent', 0)
  // The journals do not say how far things were told.
  const unmarked = async (home: string) => {
    for (const { file } of (await journalsOf(home, id)).values()) await cutAfter(file, line => !line.includes('"type":"told"'))
  }
  assert.deepEqual(await next(unmarked), [])
  await over('left', 1)
  assert.equal((await next()).at(-1), false)
  await kernel.stop()
})

test('what is put on record while a turn ends is told before the end of its prompt, and everything once, also by the next process', async t => {
  const scene = await crashScene(t, { model: busyModel })
  const judge = await tellingJudge(t)
  let between: (() => Promise<void>) | undefined
  const late = definePack({
    name: 'late',
    needs: { turns: TurnHooks },
    setup: (ctx, { turns }) => void ctx.tap(turns.turnEnd, () => between?.())
  })
  const packs = await loadDefaultPacks()
  const kernel = await startTestKernel(t, { packs: [...packs, late], home: scene.home })
  const { id } = (await kernel.rest.json('POST', '/api/v1/sessions', { metadata: { cwd: scene.place } })).data as { id: string }
  let [copy, second] = ['', '']
  between = async () => {
    between = undefined
    const body = { content: [{ type: 'text', text: 'second' }] }
    second = ((await kernel.rest.json('POST', `/api/v1/sessions/${id}/prompts`, body)).data as { prompt_id: string }).prompt_id
    await kernel.waitFor(({ type }) => type === 'prompt.queued')
    copy = await copyOfHome(scene.home)
  }
  await talk(kernel, id, 'first')
  const isOver = ({ type, payload }: Pick<Frame, 'type' | 'payload'>) => type === 'prompt.completed' && payload.promptId === second
  await kernel.waitFor(event => isOver(event as never))
  await kernel.stop()
  const order = (await eventFile(scene.home, id))
    .map(({ type }) => type)
    .filter(type => /^(turn.ended|prompt.(queued|completed))$/.test(type))
  assert.deepEqual(order, ['turn.ended', 'prompt.queued', 'prompt.completed', 'turn.ended', 'prompt.completed'])
  assert.deepEqual(await judge(scene.home, id), [])
  const again = await startTestKernel(t, { packs, home: copy })
  await again.rest.json('GET', `/api/v1/sessions/${id}/snapshot`)
  await again.waitFor(event => isOver(event as never))
  await again.stop()
  assert.deepEqual(await judge(copy, id), [])
})

test('the turn of a subagent ends at the next start also when a kill left no more of its last write than the mark before it', async t => {
  const scene = await crashScene(t, { model: busyModel }) // a call of the subagent waits to be approved
  const packs = await loadDefaultPacks()
  const kernel = await startTestKernel(t, { packs, home: scene.home })
  const { id } = (await kernel.rest.json('POST', '/api/v1/sessions', { metadata: { cwd: scene.place } })).data as { id: string }
  const body = { content: [{ type: 'text', text: 'do:agent:torn' }] }
  const asks = async (count: number) => {
    let seen = 0
    return await kernel.waitFor(({ type }) => type === 'event.approval.requested' && ++seen === count)
  }
  await kernel.rest.json('POST', `/api/v1/sessions/${id}/prompts`, body)
  const { approval_id } = (await asks(1)).payload as { approval_id: string }
  await kernel.rest.json('POST', `/api/v1/sessions/${id}/approvals/${approval_id}`, { decision: 'approved' })
  await asks(2)
  const home = await copyOfHome(scene.home)
  await kernel.stop()
  const file = (await journalsOf(home, id)).get('agent-0')?.file ?? ''
  await cutAfter(file, line => line.endsWith('}'))
  const { size } = await stat(file)
  const { epoch } = JSON.parse((await readFile(eventsOf(home, id), 'utf8')).split('\n')[0] ?? '') as { epoch: string }
  await appendFile(file, `${JSON.stringify({ type: 'told', at: size, seq: (await eventFile(home, id)).length, epoch })}\n`)

  const again = await startTestKernel(t, { packs, home })
  await again.rest.json('GET', `/api/v1/sessions/${id}/snapshot`)
  await again.rest.json('POST', `/api/v1/sessions/${id}:archive`, {}) // waits until all agents were looked at
  await again.stop()
  const types = (await eventFile(home, id)).filter(frame => frame.payload.agentId === 'agent-0').map(({ type }) => type)
  assert.deepEqual(
    types.filter(type => /^turn\.(started|ended)$/.test(type)),
    ['turn.started', 'turn.ended']
  )
})

/** Ends a file with the last line that fits; one without such a line stays. */
async function cutAfter(file: string, fits: (line: string) => boolean): Promise<void> {
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n')
  const end = lines.findLastIndex(fits)
  if (end >= 0) await writeFile(file, `${lines.slice(0, end + 1).join('\n')}\n`)
}

async function talk({ rest, waitFor }: TestKernel, id: string, text: string): Promise<string> {
  const body = { content: [{ type: 'text', text }] }
  const { prompt_id } = (await rest.json('POST', `/api/v1/sessions/${id}/prompts`, body)).data as { prompt_id: string }
  await waitFor(event => event.type === 'prompt.completed' && (event.payload as { promptId: string }).promptId === prompt_id)
  return prompt_id
}

async function reopened(t: TestContext, packs: Parameters<typeof startTestKernel>[1]['packs'], home: string, id: string): Promise<Frame[]> {
  const kernel = await startTestKernel(t, { packs, home })
  const events = await journal(kernel.url, kernel.token, id)
  await kernel.stop()
  const again = await startTestKernel(t, { packs, home })
  assert.deepEqual(await journal(again.url, again.token, id), events)
  await again.stop()
  return events
}

function approveAll({ kernel, rest }: TestKernel, id: string): void {
  kernel.hub.on('event.approval.requested', event => {
    const { approval_id } = event.payload as { approval_id: string }
    void rest.json('POST', `/api/v1/sessions/${id}/approvals/${approval_id}`, { decision: 'approved' })
  })
}

const eventsOf = (home: string, id: string) => join(home, 'server', 'events', `${id}.jsonl`)
