/**
 * Full servers that are killed at random moments of everything an agent does. Twenty servers with homes of their own live in one process, so that
 * one `kill -9` is a death for each of them, somewhere else in its sessions: starting a process costs more than all the rest.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { SocketClient } from '../../kernel/testing.ts'
import { busyModel, type ScriptName, scripts } from '../helpers/busy-model.ts'
import { startChild } from '../helpers/child.ts'
import { CrashClient, ignoreDeath, type Ledger, newLedger, newNote, Refused, type SessionNote } from '../helpers/crash-client.ts'
import { atRest, judgeHome, judgeSession } from '../helpers/crash-judge.ts'
import { crashScene, type Scene } from '../helpers/crash-scene.ts'
import { png } from '../helpers/png.ts'
import { randomSource } from '../helpers/random.ts'
import { type TellingJudge, tellingJudge } from '../helpers/record-events.ts'

const kills = Number(process.env.SVC_CODE_TEST_KILLS ?? 200)
const seed = Number(process.env.SVC_CODE_TEST_SEED ?? Date.now() % 1_000_000)
const homes = 50
/** Frames that the work of one life of all servers tells, about. */
const usual = 2600
/** Hooks of the user cost a process per call: so many homes have them. */
const hooking = 6
/** Between two lives, on the clock of the servers: what is due meanwhile fires at the next start. */
const apart = 120_000

test('whatever its agents were doing when it was killed, a server loses nothing it acknowledged, does nothing twice, and goes on', async t => {
  t.diagnostic(`SVC_CODE_TEST_SEED=${seed}`)
  const random = randomSource(seed)
  const telling = await tellingJudge(t)
  const web = await scriptedWeb(t)
  const places = await Promise.all(Array.from({ length: homes }, (_, at) => openPlace(t, at, random, web)))
  /** Deaths in the middle of each script. */
  const reached = new Map<string, number>()
  const rounds = Math.ceil(kills / homes)
  // Fewer deaths prove nothing about a script.
  const missed = () => (kills >= 200 ? [...names, ...hookNames].filter(script => !reached.has(script)) : [])
  let deaths = 0
  let idle = 0
  for (let round = 0, last = false; !last; round++) {
    last = round >= rounds && (missed().length === 0 || round >= 2 * rounds)
    const child = startChild(t, 'servers', String(round * apart), ...places.map(({ scene }) => scene.home))
    await child.atLeast(homes)
    const life = new Life(last ? Number.POSITIVE_INFINITY : Math.floor(random() * usual))
    const lives = places.map(async (place, at) => {
      const { url, token } = JSON.parse(child.lines[at] ?? '') as Server
      await live(place, { url, token, life, telling, last, round }).catch(error => {
        // A life that is over may leave anything unsaid.
        if (error instanceof Complaint || !life.over) throw error
        ignoreDeath(error)
      })
    })
    const all = Promise.all(lives)
    await Promise.race([all, life.end])
    deaths += last ? 0 : homes
    if (!life.over) idle++
    life.stop()
    await new Promise(resolve => setTimeout(resolve, random() * 4))
    await child.kill()
    for (const { open } of places) {
      for (const script of open.values()) reached.set(script, (reached.get(script) ?? 0) + 1)
      open.clear()
    }
    await all
    assert.deepEqual(child.lines.slice(homes), [], `what was told does not fit its declaration; seed ${seed}`)
  }
  for (const { scene } of places) assert.deepEqual(scene.refusals, [], `seed ${seed}`)
  t.diagnostic(`${deaths} deaths, ${idle * homes} of them of idle servers`)
  t.diagnostic([...reached].map(([script, count]) => `${script} ${count}`).join(', '))
  assert.deepEqual(missed(), [], `no server died in these; seed ${seed}`)
})

interface Server {
  readonly url: string
  readonly token: string
}

/** One life of all servers: it is over when so many frames have come. */
class Life {
  over = false
  stop: () => void = () => undefined
  readonly end = new Promise<void>(resolve => {
    this.stop = () => {
      this.over = true
      resolve()
    }
  })
  #left: number

  constructor(frames: number) {
    this.#left = frames
  }

  count(): void {
    if (--this.#left < 0) this.stop()
  }
}

/** What is wrong with a server, unless it had died meanwhile. */
class Complaint extends Error {}

interface Place {
  readonly scene: Scene
  readonly ledger: Ledger
  readonly random: () => number
  /** Sessions in which something happened since they were judged. */
  readonly touched: Set<SessionNote>
  /** Scripts of the prompts that are under way, by the prompt's name. */
  readonly open: Map<string, ScriptName>
  /** The script of the next prompt. */
  readonly next: () => ScriptName
}

const hook = (event: string, command: string, matcher = '') =>
  `[[hooks]]\nevent = "${event}"\n${matcher === '' ? '' : `matcher = "${matcher}"\n`}command = '''${command}'''\n`
const hooks = [
  hook('PreToolUse', 'grep -o \'"tool_call_id":"[^"]*"\' >> hooks'),
  hook('UserPromptSubmit', 'echo "Be careful."', 'do:hooked'),
  hook('UserPromptSubmit', 'sleep 0.05; echo no >&2; exit 2', 'do:blocked'),
  hook('Stop', 'echo "Look again." >&2; exit 2')
].join('')

async function openPlace(t: TestContext, at: number, random: () => number, web: string): Promise<Place> {
  const services = `[services.svc_fetch]\nbase_url = "${web}/fetch"\n[services.svc_search]\nbase_url = "${web}/search"\n`
  const scene = await crashScene(t, {
    model: busyModel,
    tables: `[cron]\nno_jitter = true\npoll_interval_ms = 20\n${services}${at < hooking ? hooks : ''}`
  })
  const own = randomSource(Math.floor(random() * 2 ** 31))
  // Every script comes about as often as every other one; where there are hooks, most are about them.
  let turn = Math.floor(own() * names.length)
  const next = () => {
    turn++
    if (at < hooking && turn % 4 > 0) return turn % 4 > 1 ? 'blocked' : 'hooked'
    return names[(turn * 7) % names.length] ?? 'talk'
  }
  return { scene, ledger: newLedger(), random: own, touched: new Set(), open: new Map(), next }
}

/** The services of the tools that go to the web; answers take a moment. */
async function scriptedWeb(t: TestContext): Promise<string> {
  const server = createServer((req, res) => {
    req.resume()
    const found = { search_results: [{ title: 'One', url: 'https://pages.example.com/one', snippet: 'a page' }] }
    setTimeout(() => res.end(req.url === '/search' ? JSON.stringify(found) : 'The text of the page.'), 3)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

interface Now extends Server {
  readonly life: Life
  readonly telling: TellingJudge
  readonly last: boolean
  readonly round: number
}

/** Judges what the lives before left behind, then uses the server. */
async function live(place: Place, now: Now): Promise<void> {
  const { ledger, random, touched, scene } = place
  const { url, token, life, round } = now
  const client = new CrashClient(url, token, ledger, random)
  try {
    const old = [...touched].slice(-1)
    const socket = await client.connect(url, token, now.last ? ledger.sessions.values() : touched)
    const check = (complaints: readonly string[]) => {
      if (complaints.length > 0 && !life.over) throw new Complaint(`life ${round}, seed ${seed}: ${complaints.join('\n')}`)
    }
    check(await judgeHome(client.rest, ledger))
    for (const note of [...touched]) {
      check(await judge(place, now, client, socket, note))
      if (!life.over) touched.delete(note)
    }
    if (now.last) {
      check(await everySession(place, client, socket))
      return
    }
    // What was told before is no measure of how far a life has come.
    socket.ws.on('message', () => life.count())
    const fresh = await client.session(scene.place, `life ${round}`)
    const work = [...old, fresh].map(async (note, at) => {
      touched.add(note)
      await use(place, client, socket, note, `l${round}s${at}`)
    })
    const ended = await Promise.allSettled(work)
    for (const end of ended) if (end.status === 'rejected') throw end.reason
  } finally {
    client.rest.close()
  }
}

async function judge({ scene }: Place, { url, token, telling }: Now, client: CrashClient, socket: SocketClient, note: SessionNote) {
  // What runs in the background may begin a turn while it is judged.
  for (let more = 3; ; more--) {
    const complaints = await judgeSession(socket, url, token, client.rest, note)
    const told = await telling(scene.home, note.id)
    complaints.push(...told.map(text => `${note.id}: ${text}`), ...(await effects(scene, note)))
    if (complaints.length === 0 || more === 0) return complaints
    await atRest(socket, client.rest, note)
  }
}

/** Lines that commands wrote: none twice, and one for every call that ended well. */
async function effects({ place }: Scene, note: SessionNote): Promise<string[]> {
  const complaints: string[] = []
  const lines = async (file: string) => (await readFile(join(place, file), 'utf8').catch(() => '')).split('\n').filter(line => line !== '')
  const done = await lines('effects')
  const asked = await lines('hooks')
  for (const list of [done, asked]) {
    const twice = list.filter((line, at) => list.indexOf(line) < at)
    if (twice.length > 0) complaints.push(`${note.id}: done twice: ${twice.join()}`)
  }
  for (const text of note.events.values()) {
    const { type, payload } = JSON.parse(text) as { type: string; payload: Record<string, unknown> & { info?: Info } }
    const { toolCallId, isError, output, info } = payload
    const well = type === 'tool.result' && !isError && String(output).endsWith('its output is empty)') ? String(toolCallId) : undefined
    const later = type === 'task.terminated' && info?.status === 'completed' ? /^effect (\S+)$/.exec(info.description)?.[1] : undefined
    for (const id of [well, later]) if (id !== undefined && !done.includes(id)) complaints.push(`${note.id}: the effect of ${id} is lost`)
  }
  return complaints
}

interface Info {
  readonly status: string
  readonly description: string
}

const hookNames: readonly ScriptName[] = ['hooked', 'blocked']
const names = (Object.keys(scripts) as ScriptName[]).filter(name => name !== 'child' && !hookNames.includes(name))
const picture = png(40, 40, { noise: true })

/** Two prompts after each other, and what else a user does meanwhile. */
async function use(
  { random, open, next }: Place,
  client: CrashClient,
  socket: SocketClient,
  note: SessionNote,
  name: string
): Promise<void> {
  const permission_mode = random() < 0.4 ? 'manual' : 'yolo'
  for (let at = 0; at < 2; at++) {
    const script = next()
    // The client sees by the name of a call what it is to do with it.
    const own = script === 'detach' || script === 'cancel' ? `${script}${name}p${at}` : `${name}p${at}`
    open.set(own, script)
    const media = script !== 'media' ? [] : random() < 0.5 ? await pictures(client) : await papers(client)
    const id = await client.prompt(note, `do:${script}:${own}`, { permission_mode }, media)
    const wish = random()
    if (wish < 0.1) {
      const steered = await client.prompt(note, `and do:talk:${name}p${at}s`)
      await calm(client.steer(note, steered)) // the turn may be over
    } else if (wish < 0.15) await client.abort(note)
    const ended = ({ type, payload }: { type: string; payload: { promptId?: string } }) =>
      (type === 'prompt.completed' || type === 'prompt.aborted') && payload.promptId === id
    await socket.next(ended).catch(error => {
      const told = [...note.events.values()].slice(-12).map(text => text.slice(0, 300))
      throw new Error(
        `${note.id}: ${script} (prompt ${id}) has no end: ${error.message}; unheard: ${client.unheard}; told: ${told.join('\n')}`
      )
    })
    open.delete(own)
    if (wish > 0.9) await calm(client.undo(note, id))
    else if (wish > 0.8) await calm(client.compact(note))
  }
}

/** One that is part of the prompt, one that was uploaded before. */
async function pictures(client: CrashClient): Promise<readonly object[]> {
  const file_id = await client.upload('a.png', 'image/png', picture)
  return [
    { type: 'image', source: { kind: 'base64', media_type: 'image/png', data: picture.toString('base64') } },
    { type: 'image', source: { kind: 'file', file_id } }
  ]
}

/** A file that was uploaded; nothing has to look into it. */
async function papers(client: CrashClient): Promise<readonly object[]> {
  const file_id = await client.upload('a.txt', 'text/plain', Buffer.from('words'))
  return [{ type: 'file', file_id, name: 'a.txt', media_type: 'text/plain', size: 5 }]
}

/** A session may be at work again by itself, or have nothing to take back. */
async function calm(action: Promise<void>): Promise<void> {
  await action.catch(error => {
    if (!(error instanceof Refused && /: 40(?:402|9(?:01|1[012]))/.test(error.message))) throw error
  })
}

/** Every session opens and takes a prompt, also those whose creation was never answered. */
async function everySession({ ledger }: Place, client: CrashClient, socket: SocketClient): Promise<string[]> {
  const { items } = (await client.rest.json('GET', '/api/v1/sessions?page_size=100')).data as { items: { id: string; title: string }[] }
  for (const { id, title } of items) if (!ledger.sessions.has(id)) ledger.sessions.set(id, newNote(id, title))
  const strange = [...ledger.sessions.values()].filter(note => note.epoch === '').map(note => note.id)
  await socket.request('subscribe', { session_ids: strange, cursors: Object.fromEntries(strange.map(id => [id, { seq: 0 }])) })
  const answered = async (note: SessionNote) => {
    const id = await client.prompt(note, 'do:talk:last')
    const over = (type: string) => type === 'prompt.completed' || type === 'prompt.aborted'
    const { type, payload } = await socket.next(frame => over(frame.type) && frame.payload.promptId === id)
    return payload.reason === 'completed' ? [] : [`${note.id}: a prompt ends with ${type} ${payload.reason}`]
  }
  return (await Promise.all([...ledger.sessions.values()].map(answered))).flat()
}

/** By which events it is seen that the scripts do what they say. */
const signs = {
  'automatic compaction': /"compaction\.started".*"trigger":"auto"/,
  'detached call': /"tool\.result".*detach\w*-0".*task_id/,
  'cancelled call': /"tool\.result".*cancel\w*-0".*"isError":true/,
  'page of a service': /"tool\.result".*The text of the page/,
  'search result': /"tool\.result".*pages\.example\.com\/one/,
  'blocked prompt': /"prompt\.completed".*"reason":"blocked"/,
  'hook before a prompt': /Be careful/,
  'hook at the end of a turn': /Look again/,
  picture: /"prompt\.submitted".*"type":"image"/,
  file: /"prompt\.submitted".*"type":"file"/
}

test('the scripts in which servers are killed do what they are there for', async t => {
  const place = await openPlace(t, 0, () => 0.5, await scriptedWeb(t))
  const child = startChild(t, 'servers', '0', place.scene.home)
  await child.atLeast(1)
  const { url, token } = JSON.parse(child.lines[0] ?? '') as Server
  const client = new CrashClient(url, token, place.ledger)
  const socket = await client.connect(url, token, [])
  const note = await client.session(place.scene.place, 'scripts')
  for (const script of ['media', 'fetch', 'search', 'detach', 'cancel', ...hookNames, 'grow', 'overflow'] as const) {
    const media = script === 'media' ? [...(await pictures(client)), ...(await papers(client))] : []
    const id = await client.prompt(note, `do:${script}:${script}`, { permission_mode: 'yolo' }, media)
    await socket.next(({ type, payload }) => type === 'prompt.completed' && payload.promptId === id)
  }
  client.rest.close()
  await child.kill()
  const told = [...note.events.values()]
  for (const [what, sign] of Object.entries(signs))
    assert.ok(
      told.some(text => sign.test(text)),
      what
    )
  assert.equal(told.filter(text => signs['automatic compaction'].test(text)).length, 2, 'before the window is full, and when it was')
})
