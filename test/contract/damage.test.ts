/** Torn and damaged files of a home, one by one: the server starts, every session opens, nothing else is lost, and the log says so. */
import assert from 'node:assert/strict'
import { cp, open, readdir, readFile, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { startTestKernel, type TestKernel } from '../../kernel/testing.ts'
import { crashScene } from '../helpers/crash-scene.ts'
import { freshDir } from '../helpers/temp.ts'

type Damage = (file: string) => Promise<void>

const damages: Readonly<Record<string, Damage>> = {
  'cut in half': async file => truncate(file, Math.floor((await readFile(file)).length / 2)),
  'cut before its last byte': async file => truncate(file, (await readFile(file)).length - 2),
  emptied: file => truncate(file, 0),
  'full of zeros': async file => writeFile(file, Buffer.alloc((await readFile(file)).length)),
  'overwritten in the middle': async file => {
    const handle = await open(file, 'r+')
    const { size } = await handle.stat()
    await handle.write(Buffer.from('\u0000{"][\xff}'), 0, undefined, Math.floor(size / 2))
    await handle.close()
  }
}

test('any damaged file costs at most what was in it', async t => {
  const { home, place } = await crashScene(t)
  const packs = await loadDefaultPacks()
  const first = await startTestKernel(t, { packs, home })
  const sessions = [await talk(first, place), await talk(first, place)]
  await first.stop()
  const files = (await readdir(home, { recursive: true, withFileTypes: true }))
    .filter(entry => entry.isFile() && !/server\.token|\/kv|logs/.test(join(entry.parentPath, entry.name)))
    .map(entry => join(entry.parentPath, entry.name).slice(home.length + 1))
  // Of two sessions with the same files one is enough.
  const chosen = files.filter(file => !file.includes(sessions[1] ?? ''))
  assert.ok(chosen.length >= 5, chosen.join())
  for (const file of chosen) {
    for (const [name, damage] of Object.entries(damages)) {
      await t.test(`${file.replaceAll(sessions[0] ?? '', 'S').replace(/wd_[^/]+/, 'W')} ${name}`, async t => {
        const copy = join(await freshDir(), 'home')
        await cp(home, copy, { recursive: true })
        await damage(join(copy, file))
        const warnings: string[] = []
        const kernel = await startTestKernel(t, {
          packs,
          home: copy,
          log: { level: 'warn', to: { write: line => void warnings.push(line) } }
        })
        for (const id of sessions) await judge(kernel, id, !file.includes(id), file)
        assert.equal((await kernel.rest.json('POST', '/api/v1/workspaces', { root: copy })).code, 0)
        assert.equal(((await kernel.rest.json('GET', '/api/v1/workspaces')).data as { items: unknown[] }).items.length > 0, true)
        await kernel.kernel.hub.flushed()
        // Empty settings, histories and journals look like new ones, and a line without its newline is whole. The index is made anew.
        const isNew = name === 'emptied' && /toml$|wire|events/.test(file)
        const silent = isNew || (name.startsWith('cut before') && /toml$/.test(file)) || file.endsWith('.index.jsonl')
        assert.ok(silent || warnings.length > 0, 'the log says nothing')
      })
    }
  }
})

async function talk({ rest, waitFor }: TestKernel, cwd: string): Promise<string> {
  const { id } = (await rest.json('POST', '/api/v1/sessions', { metadata: { cwd } })).data as { id: string }
  const body = { content: [{ type: 'text', text: 'talk' }] }
  assert.equal((await rest.json('POST', `/api/v1/sessions/${id}/prompts`, body)).code, 0)
  await waitFor(event => event.type === 'prompt.completed' && event.session_id === id)
  return id
}

async function judge(kernel: TestKernel, id: string, whole: boolean, file: string): Promise<void> {
  const { rest } = kernel
  const listed = (await rest.json('GET', '/api/v1/sessions')).data as { items: { id: string }[] }
  assert.ok(
    listed.items.some(item => item.id === id),
    'the session is not listed'
  )
  const messages = await rest.json('GET', `/api/v1/sessions/${id}/messages`)
  assert.equal(messages.code, 0, messages.msg)
  const { items } = messages.data as { items: unknown[] }
  if (whole || !file.includes('wire')) assert.ok(items.length >= 2, `${items.length} messages`)
  const socket = await kernel.connect()
  const ack = await socket.request('subscribe', { session_ids: [id], cursors: { [id]: { seq: 0 } } })
  assert.deepEqual(ack.payload.not_found, [])
  const events = socket.frames.filter(frame => frame.seq !== undefined && !frame.volatile && frame.session_id === id)
  if (!file.includes('events/') && !file.includes('agents/')) {
    assert.equal(events.filter(frame => frame.type === 'turn.ended').length, 1)
  }
  if (file === 'config.toml') return
  const body = { content: [{ type: 'text', text: 'talk again' }] }
  const accepted = await rest.json('POST', `/api/v1/sessions/${id}/prompts`, body)
  assert.equal(accepted.code, 0, accepted.msg)
  const { prompt_id } = accepted.data as { prompt_id: string }
  const ended = await socket.next(frame => frame.type === 'prompt.completed' && frame.payload.promptId === prompt_id)
  assert.equal(ended.payload.reason, 'completed')
}
