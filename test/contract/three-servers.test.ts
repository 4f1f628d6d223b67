/** Random work at three servers of one home that are killed now and then: all tell the same in the end, and nothing acknowledged is lost. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Envelope, type Frame, RestClient, SocketClient } from '../../kernel/testing.ts'
import { type Running, serve } from '../helpers/cli.ts'
import { journal } from '../helpers/crash-judge.ts'
import { crashScene } from '../helpers/crash-scene.ts'
import { randomSource } from '../helpers/random.ts'

interface Server extends Running {
  readonly rest: RestClient
}

interface Known {
  title: string
  archived: boolean
  readonly prompts: Set<string>
}

interface Item {
  readonly id: string
  readonly title: string
  readonly archived: boolean
  readonly busy: boolean
}

const steps = 45
const everyone = new Set(['event.session.created', 'event.session.work_changed', 'session.meta.updated'])

async function started(t: TestContext, home: string): Promise<Server> {
  const server = await serve(t, home, '--port', '0')
  const rest = new RestClient(server.url, server.token)
  t.after(() => rest.close())
  return { ...server, rest }
}

/** A client that moves from server to server and keeps what it has seen. */
class Wanderer {
  readonly cursors = new Map<string, { seq: number; epoch: string }>()
  readonly faults: string[] = []
  readonly #raw = new Map<string, Set<number>>()
  #socket: SocketClient | undefined

  async moveTo(server: Server, ids: readonly string[]): Promise<void> {
    this.#socket?.terminate()
    const socket = await SocketClient.open(server.url, server.token)
    this.#socket = socket
    socket.ws.on('message', (data: Buffer) => this.#take(JSON.parse(String(data)) as Frame))
    const cursors = Object.fromEntries(ids.map(id => [id, this.cursors.get(id) ?? { seq: 0 }]))
    await socket.request('client_hello', { subscriptions: ids, cursors })
  }

  async follow(id: string): Promise<void> {
    await this.#socket?.request('subscribe', { session_ids: [id], cursors: { [id]: this.cursors.get(id) ?? { seq: 0 } } })
  }

  close(): void {
    this.#socket?.terminate()
  }

  #take(frame: Frame): void {
    if (frame.type === 'resync_required') {
      const { session_id, current_seq, epoch } = frame.payload as { session_id: string; current_seq: number; epoch: string }
      this.cursors.set(session_id, { seq: current_seq, epoch })
      return
    }
    const { session_id: id, seq, epoch, type } = frame
    if (id === undefined || id === '__global__' || seq === undefined || epoch === undefined || frame.volatile) return
    const raw = this.#raw.get(id) ?? new Set()
    if (raw.has(seq) && !everyone.has(type)) this.faults.push(`${id}: ${type} ${seq} came twice`)
    this.#raw.set(id, raw.add(seq))
    const last = this.cursors.get(id)?.seq ?? 0
    if (seq <= last) return
    if (seq > last + 1 && !everyone.has(type)) this.faults.push(`${id}: ${last} was followed by ${seq} (${type})`)
    if (seq === last + 1) this.cursors.set(id, { seq, epoch })
  }
}

test('three servers of one home agree after random work and kills, and a client that moves between them misses nothing', {
  timeout: 150_000
}, async t => {
  const seed = Number(process.env.SVC_CODE_TEST_SEED ?? Date.now() % 1_000_000)
  t.diagnostic(`seed ${seed}`)
  const random = randomSource(seed)
  const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)] as T
  const { home, place } = await crashScene(t)
  const servers = [await started(t, home), await started(t, home), await started(t, home)]
  const known = new Map<string, Known>()
  const client = new Wanderer()
  t.after(() => client.close())
  let at = 0
  await client.moveTo(servers[at]!, [])
  const ask = async (method: string, path: string, body?: unknown): Promise<Envelope> => await pick(servers).rest.json(method, path, body)

  const acts: Record<string, () => Promise<void>> = {
    async create() {
      const { code, msg, data } = await ask('POST', '/api/v1/sessions', { metadata: { cwd: place }, title: 'new' })
      assert.equal(code, 0, msg)
      const { id } = data as Item
      known.set(id, { title: 'new', archived: false, prompts: new Set() })
      await client.follow(id)
    },
    async prompt() {
      const [id, note] = pick([...known])
      const { code, data } = await ask('POST', `/api/v1/sessions/${id}/prompts`, { content: [{ type: 'text', text: 'talk' }] })
      if (code === 0) note.prompts.add((data as { prompt_id: string }).prompt_id)
    },
    async title() {
      const [id, note] = pick([...known])
      const title = `t${Math.floor(random() * 1000)}`
      if ((await ask('POST', `/api/v1/sessions/${id}/profile`, { title })).code === 0) note.title = title
    },
    async archive() {
      const [id, note] = pick([...known])
      if ((await ask('POST', `/api/v1/sessions/${id}:${note.archived ? 'restore' : 'archive'}`)).code === 0) note.archived = !note.archived
    },
    async move() {
      at = Math.floor(random() * servers.length)
      await client.moveTo(servers[at]!, [...known.keys()])
    },
    async kill() {
      const dead = Math.floor(random() * servers.length)
      servers[dead]!.child.kill('SIGKILL')
      await servers[dead]!.ended
      servers[dead] = await started(t, home)
      if (dead === at) await client.moveTo(servers[at]!, [...known.keys()])
    }
  }
  await acts.create!()
  const kills = new Set([Math.floor(steps / 3), Math.floor((2 * steps) / 3)])
  for (let step = 0; step < steps; step++) {
    const act = kills.has(step) ? 'kill' : pick(['create', 'prompt', 'prompt', 'prompt', 'prompt', 'title', 'archive', 'move'])
    await acts[act]!()
  }

  const list = async ({ rest }: Server) =>
    ((await rest.json('GET', '/api/v1/sessions?include_archive=true&page_size=100')).data as { items: Item[] }).items
  const told = (items: readonly Item[]) =>
    items.map(({ id, title, archived, busy }) => ({ id, title, archived, busy })).sort((a, b) => (a.id < b.id ? -1 : 1))
  const expected = [...known]
    .map(([id, { title, archived }]) => ({ id, title, archived, busy: false }))
    .sort((a, b) => (a.id < b.id ? -1 : 1))
  for (const server of servers) {
    let items = told(await list(server))
    while (JSON.stringify(items) !== JSON.stringify(expected) && items.some(({ busy }) => busy)) {
      await new Promise(resolve => setTimeout(resolve, 100))
      items = told(await list(server))
    }
    // Facts of others come within a second.
    for (
      const end = Date.now() + 1000;
      JSON.stringify(items) !== JSON.stringify(expected) && Date.now() < end;
      items = told(await list(server))
    )
      await new Promise(resolve => setTimeout(resolve, 50))
    assert.deepEqual(items, expected)
  }
  for (const [id, { prompts }] of known) {
    const { url, token } = pick(servers)
    const events = await journal(url, token, id)
    assert.deepEqual(
      events.map(({ seq }) => seq),
      events.map((_, index) => index + 1)
    )
    const told = events.filter(({ type }) => type === 'prompt.submitted')
    const submitted = told.map(({ payload }) => payload.promptId as string)
    assert.equal(new Set(told.map(({ payload }) => `${payload.promptId} ${payload.status}`)).size, told.length)
    for (const prompt of prompts) assert.ok(submitted.includes(prompt), `prompt ${prompt} of ${id} is lost`)
    for (const end = Date.now() + 5000; client.cursors.get(id)?.seq !== events.length && Date.now() < end; )
      await new Promise(resolve => setTimeout(resolve, 20))
    const { seq = 0 } = client.cursors.get(id) ?? {}
    const missing = events.slice(seq, seq + 3).map(({ type }) => type)
    assert.equal(
      seq,
      events.length,
      `the client stands at ${seq} of ${events.length} before ${missing.join(', ')}; ${client.faults.slice(0, 5).join('; ')}`
    )
  }
  assert.deepEqual(client.faults, [])
})
