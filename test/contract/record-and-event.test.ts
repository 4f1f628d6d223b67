/** A process that dies between a record and its event: wherever the events stop, the next start tells the rest, exactly once. */
import assert from 'node:assert/strict'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { type Frame, startTestKernel, type TestKernel } from '../../kernel/testing.ts'
import { journal, judgeEvents } from '../helpers/crash-judge.ts'
import { crashScene } from '../helpers/crash-scene.ts'
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
      const note = { id, title: '', prompts, approved: new Set<string>(), events: known, epoch: '' }
      assert.deepEqual(judgeEvents(events, note), [], `${text}: with ${kept - 1} of ${lines.length - 1} events`)
      if (kept === lines.length) assert.equal(events.length, lines.length - 1)
    }
    told = lines.length
  }
})

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
