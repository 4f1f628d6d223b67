/** Two servers on one home that write all the time and are killed at any moment: the file stays whole, what was acknowledged stays in it. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { readToml } from '../../../features/config/toml.ts'
import { program } from '../../helpers/child.ts'
import { freshDir } from '../../helpers/temp.ts'
import type { StormNote } from '../../programs/config-storm.ts'

const KILLS = 6
const kept = '# mine, above\n\n[packs]\nload = [] # mine\n\n[unknown.table]\nfield = 1979-05-27 # stays\n\n'

/** Everything that the servers said, in their order. */
class Notes {
  readonly #states = new Map<string, StormNote['state']>()
  #wake: () => void = () => undefined
  #failure: Error | undefined

  fail(failure: Error): void {
    this.#failure = failure
    this.#wake()
  }

  take({ what, name, state }: StormNote): void {
    this.#states.set(`${what} ${name}`, state)
    this.#wake()
  }

  state(what: StormNote['what'], name: string): StormNote['state'] | undefined {
    return this.#states.get(`${what} ${name}`)
  }

  names(what: StormNote['what']): string[] {
    return [...this.#states.keys()].flatMap(key => (key.startsWith(`${what} `) ? [key.slice(what.length + 1)] : []))
  }

  get size(): number {
    return this.#states.size
  }

  async atLeast(size: number): Promise<void> {
    while (this.#states.size < size) {
      if (this.#failure) throw this.#failure
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
  }
}

function start(t: TestContext, home: string, prefix: string, notes: Notes): ChildProcess {
  const child = fork(program('config-storm'), [home, prefix])
  t.after(() => child.kill('SIGKILL'))
  child.on('message', note => notes.take(note as StormNote))
  child.once('exit', code => {
    if (code !== null) notes.fail(new Error(`server ${prefix} ended with ${code}`))
  })
  return child
}

async function kill(child: ChildProcess): Promise<void> {
  const gone = once(child, 'close') // after the last message
  child.kill('SIGKILL')
  await gone
}

test('kill -9 at random moments of a storm of patches and provider changes loses nothing that was acknowledged', async t => {
  const home = await freshDir()
  const path = join(home, 'config.toml')
  await writeFile(path, kept)
  const notes = new Notes()
  const servers = ['a0', 'b0'].map(prefix => start(t, home, prefix, notes))

  for (let round = 1; round <= KILLS; round++) {
    await notes.atLeast(notes.size + 6)
    await pause(Math.random() * 20) // any moment of a save, which takes a few milliseconds
    const victim = round % 2
    await kill(servers[victim]!)
    const set = notes.names('flag').filter(name => notes.state('flag', name) === 'done') // before the file is read: one server goes on
    check(await readFile(path, 'utf8'), notes, set, 'ab'[1 - victim])
    servers[victim] = start(t, home, `${'ab'[victim]}${round}`, notes)
  }
  await notes.atLeast(notes.size + 12)
  await Promise.all(servers.map(kill))

  const set = notes.names('flag').filter(name => notes.state('flag', name) === 'done')
  check(await readFile(path, 'utf8'), notes, set)
  assert.ok(notes.names('flag').some(name => name.startsWith('a')) && notes.names('flag').some(name => name.startsWith('b')))
})

/**
 * `set`: flags that must be there. `alive`: first letter of the server that still runs. What it has begun meanwhile is not known here, but
 * a flag that is set stays set.
 */
function check(text: string, notes: Notes, set: readonly string[], alive?: string): void {
  const file = readToml(text) as Record<string, Record<string, { provider?: string }>>
  const { experimental = {}, providers = {}, models = {} } = file
  for (const line of kept.split('\n').filter(line => line !== '')) assert.ok(text.split('\n').includes(line), `${line} is gone`)
  for (const name of set) assert.equal(experimental[name], true, name)
  for (const name of notes.names('created')) {
    if (notes.state('created', name) !== 'done' || name[0] === alive) continue
    const deleted = notes.state('deleted', name)
    const renamed = notes.state('renamed', name)
    const here = Object.hasOwn(providers, name)
    const moved = Object.hasOwn(providers, `${name}-new`)
    if (deleted === 'done') assert.ok(!here, `${name} is back`)
    else if (renamed === 'done') assert.ok(moved && !here, `${name} is not renamed`)
    else if (!deleted) assert.ok(here !== moved && (here || renamed), `${name} is gone`)
  }
  for (const id of Object.keys(providers)) {
    const aliases = Object.entries(models).flatMap(([alias, { provider }]) => (provider === id ? [alias] : []))
    assert.deepEqual(aliases.sort(), [`${id}/a`, `${id}/b`, `${id}/c`], 'a provider is whole')
  }
}
