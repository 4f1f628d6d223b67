/** Each pack of the agent switched off alone: the others are there, and a turn with a command that the user permits works. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { startTestKernel } from '../../kernel/testing.ts'
import { crashScene } from '../helpers/crash-scene.ts'

const optional = [
  'tasks',
  'cron',
  'questions',
  'plan',
  'todo',
  'goals',
  'sessions-v2',
  'transcript',
  'messages',
  'session-views',
  'titles',
  'export',
  'subagents',
  'compaction',
  'undo',
  'fork',
  'terminals',
  'watch',
  'search',
  'gui-store',
  'instructions',
  'skills',
  'plugins',
  'capabilities',
  'mcp',
  'mcp-v2',
  'user-hooks',
  'tools-web',
  'tools-files',
  'files',
  'fs',
  'git',
  'fs-host',
  'file-search',
  'media',
  'request-repair',
  'api-docs',
  'debug',
  'catalog',
  'oauth'
]

/** Packs that cannot be there without another one: they wait for it, and nobody misses them. */
const dependents: Readonly<Record<string, readonly string[]>> = { mcp: ['mcp-v2'], messages: ['undo'], 'session-views': ['undo'] }

for (const name of optional) {
  test(`without the pack ${name} all others are active, and a command runs once the user approved`, async t => {
    const { home, place } = await crashScene(t)
    const packs = await loadDefaultPacks([name])
    assert.ok(
      (await loadDefaultPacks()).some(pack => pack.name === name),
      `${name} is a default pack`
    )
    const server = await startTestKernel(t, { packs, home })
    assert.deepEqual(
      server.kernel
        .features()
        .flatMap(each => (each.state === 'Active' || dependents[name]?.includes(each.name) ? [] : [{ name: each.name, meta: each.meta }])),
      []
    )
    const { rest } = server
    const { id } = (await rest.json('POST', '/api/v1/sessions', { metadata: { cwd: place } })).data as { id: string }
    server.kernel.hub.on('event.approval.requested', event => {
      const { approval_id } = event.payload as { approval_id: string }
      void rest.json('POST', `/api/v1/sessions/${id}/approvals/${approval_id}`, { decision: 'approved' })
    })
    const body = { content: [{ type: 'text', text: 'tools' }] }
    const { prompt_id } = (await rest.json('POST', `/api/v1/sessions/${id}/prompts`, body)).data as { prompt_id: string }
    await server.waitFor(({ type, payload }) => type === 'prompt.completed' && (payload as { promptId: string }).promptId === prompt_id)
    const results = server.events.flatMap(({ type, payload }) =>
      type === 'tool.result' ? (payload as { output: string; isError?: boolean }) : []
    )
    assert.deepEqual(
      results.map(({ output, isError }) => [output.trim(), isError]),
      [
        ['one\ntwo', undefined],
        ['three', undefined]
      ]
    )
    const ended = server.events.flatMap(({ type, payload }) => (type === 'turn.ended' ? (payload as { reason: string }).reason : []))
    assert.deepEqual(ended, ['completed'])
    if (name === 'session-views') return
    const status = await rest.json('GET', `/api/v1/sessions/${id}/status`)
    const snapshot = await rest.json('GET', `/api/v1/sessions/${id}/snapshot`)
    const { messages, as_of_seq } = snapshot.data as { messages: { items: unknown[]; has_more: boolean }; as_of_seq: number }
    assert.deepEqual([status.code, snapshot.code, as_of_seq > 0, messages.items.length > 0], [0, 0, true, name !== 'messages'])
    assert.equal(messages.has_more, false)
  })
}
