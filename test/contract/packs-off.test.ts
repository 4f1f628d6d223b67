/** Each default pack switched off alone: what does not need it is there and answers, and a turn does what it still can. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultPacks, loadDefaultPacks } from '../../features/default-packs.ts'
import type { Pack } from '../../kernel/index.ts'
import { startTestKernel, type TestKernel } from '../../kernel/testing.ts'
import { crashScene } from '../helpers/crash-scene.ts'

/** What becomes of two commands of the model, which the user approves: their output, or why they did not run. */
type Results = readonly [RegExp, isError?: true][]
const both: Results = [[/^one\ntwo$/], [/^three$/]]
const neither = (why: RegExp): Results => [
  [why, true],
  [why, true]
]

/** Where a turn cannot do all: what its commands answer, or the code that the prompt is refused with. */
const lesser: Readonly<Record<string, Results | number>> = {
  tools: neither(/^Tool not available: Bash$/),
  'tools-shell': neither(/^Tool not found: Bash$/),
  permissions: neither(/^Tool not found: Bash$/), // tools wait for who decides about them
  interactions: neither(/approv/),
  'llm-chat': 40113,
  ...Object.fromEntries(['config', 'workspaces', 'sessions', 'llm', 'history', 'agent', 'prompts'].map(name => [name, 40400]))
}

const all = await loadDefaultPacks()

for (const name of Object.keys(defaultPacks)) {
  test(`without the pack ${name} all that does not need it is active and answers, and a turn does what it can`, async t => {
    const { home, place } = await crashScene(t)
    const packs = await loadDefaultPacks([name])
    const server = await startTestKernel(t, { packs, home })
    const waiting = dependents(all, name)
    assert.deepEqual(
      server.kernel.features().flatMap(({ name, state, meta }) => (state === 'Active' ? [] : [{ name, state, error: meta.error }])),
      packs.filter(pack => waiting.has(pack.name)).map(pack => ({ name: pack.name, state: 'Pending', error: undefined }))
    )
    if (isKnown(packs, name)) for (const path of readable(server)) assert.equal((await server.rest.raw('GET', path)).status, 200, path)
    const expected = lesser[name] ?? both
    const session = await server.rest.json('POST', '/api/v1/sessions', { metadata: { cwd: place } })
    if (waiting.has('sessions') || name === 'sessions') return assert.equal(session.code, 40400)
    const { id } = session.data as { id: string }
    if (typeof expected === 'number') return assert.equal((await prompt(server, id)).code, expected)
    await turn(server, id, expected)
    await views(server, id, name, waiting)
  })
}

const servicesOf = (name: string) => new Set(all.find(pack => pack.name === name)?.provides.map(({ id }) => id))

/** Does a pack of these ask for a service of this one? What nobody asks for is missed by nobody. */
function isKnown(packs: readonly Pack[], name: string): boolean {
  const provided = servicesOf(name)
  return packs.some(({ needs, optional }) => [...Object.values(needs), ...Object.values(optional)].some(({ id }) => provided.has(id)))
}

/** What can be read without parameters. */
const readable = ({ kernel }: TestKernel) => kernel.inspect().routes.flatMap(route => /^GET (\/api\/[^{]+)$/.exec(route)?.[1] ?? [])

/** The packs that need a service of this one, or of one that needs it. */
function dependents(packs: readonly Pack[], name: string): ReadonlySet<string> {
  const gone = new Set<string>([name])
  const missing = servicesOf(name)
  for (let grown = true; grown; ) {
    grown = false
    for (const pack of packs) {
      if (gone.has(pack.name) || !Object.values(pack.needs).some(({ id }) => missing.has(id))) continue
      gone.add(pack.name)
      for (const { id } of pack.provides) missing.add(id)
      grown = true
    }
  }
  gone.delete(name)
  return gone
}

const prompt = ({ rest }: TestKernel, id: string) =>
  rest.json('POST', `/api/v1/sessions/${id}/prompts`, { content: [{ type: 'text', text: 'tools' }] })

async function turn(server: TestKernel, id: string, expected: Results): Promise<void> {
  const { rest } = server
  server.kernel.hub.on('event.approval.requested', event => {
    const { approval_id } = event.payload as { approval_id: string }
    void rest.json('POST', `/api/v1/sessions/${id}/approvals/${approval_id}`, { decision: 'approved' })
  })
  const { prompt_id } = (await prompt(server, id)).data as { prompt_id: string }
  await server.waitFor(({ type, payload }) => type === 'prompt.completed' && (payload as { promptId: string }).promptId === prompt_id)
  const of = <T>(wanted: string) => server.events.flatMap(({ type, payload }) => (type === wanted ? [payload as T] : []))
  const results = of<{ output: string; isError?: boolean }>('tool.result')
  assert.deepEqual(
    results.map(({ isError }) => isError),
    expected.map(([, isError]) => isError)
  )
  for (const [at, [output]] of expected.entries()) assert.match(results[at]?.output.trim() ?? '', output)
  assert.deepEqual(
    of<{ reason: string }>('turn.ended').map(({ reason }) => reason),
    ['completed']
  )
}

async function views({ rest }: TestKernel, id: string, name: string, waiting: ReadonlySet<string>): Promise<void> {
  if (name === 'session-views' || waiting.has('session-views')) return
  const status = await rest.json('GET', `/api/v1/sessions/${id}/status`)
  const snapshot = await rest.json('GET', `/api/v1/sessions/${id}/snapshot`)
  const { messages, as_of_seq } = snapshot.data as { messages: { items: unknown[]; has_more: boolean }; as_of_seq: number }
  assert.deepEqual([status.code, snapshot.code, as_of_seq > 0, messages.items.length > 0], [0, 0, true, name !== 'messages'])
  assert.equal(messages.has_more, false)
}
