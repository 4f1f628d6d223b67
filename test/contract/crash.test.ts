/** The crash rule from outside: whatever a server acknowledged before `kill -9` is there after the next start. */
import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { serve } from '../helpers/cli.ts'
import { CrashClient, ignoreDeath, newLedger, type SessionNote } from '../helpers/crash-client.ts'
import { judgeHome, judgeSession } from '../helpers/crash-judge.ts'
import { crashScene } from '../helpers/crash-scene.ts'
import { randomSource } from '../helpers/random.ts'

const kills = Number(process.env.SVC_CODE_TEST_KILLS ?? 7)
const seed = Number(process.env.SVC_CODE_TEST_SEED ?? 20)

test('kill -9 at any moment of a busy server loses nothing acknowledged, and every turn ends exactly once', async t => {
  const scene = await crashScene(t)
  const ledger = newLedger()
  const random = randomSource(seed)
  for (let round = 0; round <= kills; round++) {
    const server = await serve(t, scene.home, '--port', '0')
    const client = new CrashClient(server.url, server.token, ledger)
    t.after(() => client.rest.close())
    const touched = [...ledger.sessions.values()].slice(-3)
    const socket = await client.connect(server.url, server.token, touched)
    const complaints = await judgeHome(client.rest, ledger)
    for (const note of touched) complaints.push(...(await judgeSession(socket, server.url, server.token, client.rest, note)))
    assert.deepEqual(complaints, [], `after kill ${round}`)
    if (round === kills) break
    const work = busy(client, scene.place, round, touched.at(-1), random)
    await pause(20 + random() * 420)
    server.child.kill('SIGKILL')
    await Promise.all([work, server.ended])
    client.rest.close()
  }
  assert.deepEqual(scene.refusals, [])
})

/** Everything a client may do, side by side, until the server is gone. */
async function busy(client: CrashClient, place: string, round: number, old: SessionNote | undefined, random: () => number): Promise<void> {
  const settings = async () => {
    for (let n = 1; ; n++) await client.setting(1000 * (round + 1) + n)
  }
  const places = async () => {
    for (let n = 0; ; n++) {
      const root = join(place, `${round}-${n}`)
      await mkdir(root)
      await client.workspace(root)
      await pause(10)
    }
  }
  const talks = async (note: SessionNote | undefined, n: number) => {
    const session = note ?? (await client.session(place, `talk ${round}.${n}`))
    for (let at = 0; at < 4; at++) {
      await client.prompt(session, `${random() < 0.5 ? 'tools' : 'talk'} ${round}.${n}.${at}`)
      await pause(random() * 80)
    }
  }
  await Promise.all([settings(), places(), talks(old, 0), talks(undefined, 1), talks(undefined, 2)].map(work => work.catch(ignoreDeath)))
}

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
