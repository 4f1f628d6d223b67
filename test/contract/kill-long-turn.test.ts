/** A turn of 600 steps in a process that is killed five times: every event of every record is told once. */
import assert from 'node:assert/strict'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventsOf } from '../../features/agent/events.ts'
import { Conversation } from '../../features/history/conversation.ts'
import type { HistoryRecord } from '../../features/history/index.ts'
import type { Frame } from '../../kernel/testing.ts'
import { serve } from '../helpers/cli.ts'
import { CrashClient, ignoreDeath, newLedger } from '../helpers/crash-client.ts'
import { judgeEvents } from '../helpers/crash-judge.ts'
import { fakeUpstream } from '../helpers/fake-upstream.ts'
import { modelConfig } from '../helpers/model-config.ts'
import { freshDir } from '../helpers/temp.ts'

const steps = 600
/** The steps in which the process dies. */
const deaths = [23, 61, 8, 97, 211]

test('a turn of 600 steps that is killed again and again tells every event of its records exactly once', async t => {
  const home = await freshDir()
  const place = await freshDir()
  await writeFile(join(place, 'a.txt'), 'some text of a file\n')
  let asked = 0
  let reached = () => {}
  const upstream = await fakeUpstream(t, (_body, n) => {
    asked++
    if (asked === deaths[0]) reached()
    return asked <= steps ? [{ tool: { name: 'Read', args: { path: 'a.txt', limit: n + 1 } } }] : [{ text: 'done' }]
  })
  await writeFile(
    join(home, 'config.toml'),
    `default_permission_mode = "yolo"\n${modelConfig(upstream.url, { key: 'k', model: 'm', max_context_size: 1_000_000 })}`
  )
  const ledger = newLedger()
  for (let round = 0; ; round++) {
    const server = await serve(t, home, '--port', '0')
    const client = new CrashClient(server.url, server.token, ledger)
    t.after(() => client.rest.close())
    const socket = await client.connect(server.url, server.token, ledger.sessions.values())
    const note = [...ledger.sessions.values()][0] ?? (await client.session(place, 'long'))
    // Who asks for the session has it told what the process before kept to itself.
    await client.rest.json('GET', `/api/v1/sessions/${note.id}/snapshot`)
    if (round > 0) {
      const events = await eventFile(home, note.id)
      assert.deepEqual(judgeEvents(events, note), [], `after kill ${round}`)
      const wire = await wireOf(home)
      assert.deepEqual(keys(events.filter(isOfRecord)), keys(eventsFrom(wire)), `after kill ${round}`)
    }
    if (deaths.length === 0) break
    asked = 0
    const reaches = new Promise<void>(resolve => {
      reached = resolve
    })
    await client.prompt(note, `go ${round}`)
    await reaches
    await new Promise(resolve => setTimeout(resolve, (round * 7) % 5)) // at another place of the step each time
    server.child.kill('SIGKILL')
    await server.ended
    await socket.close().catch(ignoreDeath)
    client.rest.close()
    deaths.shift()
  }
})

const told = ['turn.started', 'turn.ended', 'turn.step.started', 'turn.step.completed', 'tool.call.started', 'tool.result']
const isOfRecord = ({ type }: { readonly type: string }) => told.includes(type)

/** What each event is about. */
function keys(events: readonly { readonly type: string; readonly payload: Readonly<Record<string, unknown>> }[]): string[] {
  return events.map(({ type, payload: { turnId, stepId, toolCallId } }) => JSON.stringify({ type, turnId, stepId, toolCallId })).sort()
}

function eventsFrom(records: readonly HistoryRecord[]) {
  const before = new Conversation()
  const events = records.flatMap(record => {
    const made = eventsOf(record, before, { id: 'main' })
    before.apply(record)
    return made
  })
  return events.filter(isOfRecord)
}

/** Every event that is on disk. */
async function eventFile(home: string, id: string): Promise<Frame[]> {
  const lines = (await readFile(join(home, 'server', 'events', `${id}.jsonl`), 'utf8')).trimEnd().split('\n')
  return lines.slice(1).map(line => JSON.parse(line) as Frame)
}

async function wireOf(home: string): Promise<HistoryRecord[]> {
  const file = (await readdir(home, { recursive: true })).find(name => name.endsWith('agents/main/wire.jsonl')) ?? ''
  const lines = (await readFile(join(home, file), 'utf8')).trimEnd().split('\n')
  return lines.map(line => JSON.parse(line) as HistoryRecord)
}
