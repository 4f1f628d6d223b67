/** When models are discovered again by themselves. Timers are the test's own. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { modelCatalogSection } from '../../../features/config/index.ts'
import { LlmLogins } from '../../../features/llm/index.ts'
import { modelCatalogChanged } from '../../../features/providers/index.ts'
import { scheduleRefresh } from '../../../features/providers/schedule.ts'
import { definePack } from '../../../kernel/index.ts'
import { discovering, listServer, start } from './scene.ts'

interface Settings {
  refresh_interval_ms: number
  refresh_on_start: boolean
}

/** A schedule whose refreshes end when the test says so. */
function schedule(t: TestContext, settings: Settings) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const listeners = new Set<() => void>()
  const running: (() => void)[] = []
  let started = 0
  let reads = 0
  const config = {
    get() {
      reads++
      return settings as never
    },
    onChange(listener: (change: { fields: string[] }) => void) {
      const entry = () => listener({ fields: ['model_catalog'] })
      listeners.add(entry)
      return () => void listeners.delete(entry)
    }
  }
  const refresh = () => {
    started++
    return new Promise<void>(resolve => running.push(resolve))
  }
  const { begin, close } = scheduleRefresh(config, refresh)
  t.after(close)
  return {
    begin,
    close,
    started: () => started,
    reads: () => reads,
    listeners,
    pass: (ms: number) => t.mock.timers.tick(ms),
    change(next: Partial<Settings>) {
      Object.assign(settings, next)
      for (const listener of listeners) listener()
    },
    /** Ends the refresh that runs; resolves when the schedule knows. */
    async end() {
      running.shift()?.()
      await new Promise(resolve => setImmediate(resolve))
    }
  }
}

test('the next refresh comes an interval after the last one ended', async t => {
  const { begin, started, pass, end } = schedule(t, { refresh_interval_ms: 1000, refresh_on_start: true })
  assert.equal(started(), 0, 'not before the server is up')

  begin()
  assert.equal(started(), 1)
  pass(5000)
  assert.equal(started(), 1, 'one at a time')
  await end()
  pass(999)
  assert.equal(started(), 1)
  pass(1)
  assert.equal(started(), 2)
})

test('without refresh_on_start the first one comes after an interval', t => {
  const { begin, started, pass } = schedule(t, { refresh_interval_ms: 1000, refresh_on_start: false })

  begin()
  pass(999)
  assert.equal(started(), 0)
  pass(1)
  assert.equal(started(), 1)
})

test('an interval of 0 leaves only the start; a longer interval than a timer takes does not fire at once', async t => {
  const never = schedule(t, { refresh_interval_ms: 0, refresh_on_start: true })
  never.begin()
  await never.end()
  never.pass(2 ** 31)
  assert.equal(never.started(), 1)

  never.change({ refresh_interval_ms: 2 ** 40 })
  never.pass(1000)
  assert.equal(never.started(), 1)
})

test('an interval that is switched on counts from then on; other changes move nothing', t => {
  const { started, pass, change } = schedule(t, { refresh_interval_ms: 0, refresh_on_start: false })

  change({ refresh_interval_ms: 1000 })
  pass(600)
  change({})
  pass(400)
  assert.equal(started(), 1)
})

test('a changed interval begins anew, and 0 stops', t => {
  const { started, pass, change } = schedule(t, { refresh_interval_ms: 1000, refresh_on_start: false })

  pass(900)
  change({ refresh_interval_ms: 500 })
  pass(499)
  assert.equal(started(), 0)
  change({ refresh_interval_ms: 0 })
  pass(100_000)
  assert.equal(started(), 0)
})

test('a change while a refresh runs counts at its end', async t => {
  const { begin, started, pass, change, end } = schedule(t, { refresh_interval_ms: 1000, refresh_on_start: true })

  begin()
  change({ refresh_interval_ms: 50 })
  pass(500)
  assert.equal(started(), 1)
  await end()
  pass(50)
  assert.equal(started(), 2)
  change({ refresh_interval_ms: 0 })
  await end()
  pass(10_000)
  assert.equal(started(), 2)
})

test('after its end nothing fires, nobody is listened to, and the configuration, which may be gone, is not asked', async t => {
  const { begin, started, reads, pass, close, end, listeners } = schedule(t, { refresh_interval_ms: 1000, refresh_on_start: true })

  begin()
  close()
  const before = reads()
  await end()
  pass(5000)

  assert.equal(reads(), before)
  assert.equal(started(), 1)
  assert.equal(listeners.size, 0)
})

test('the default is every six hours and at the start', () => {
  assert.deepEqual(modelCatalogSection.default, { refresh_interval_ms: 21_600_000, refresh_on_start: true })
})

test('the refresh at the start finds the logins of packs that come later', async t => {
  const { url, asked } = await listServer(t, () => ({ data: [{ id: 'm', context_length: 10 }] }))
  const toml = `[providers."managed:svc-code"]\ntype = "svc"\nbase_url = "${url}"\noauth = { storage = "file", key = "svc-code" }\n`
  const late = definePack({
    name: 'late',
    async setup(ctx) {
      for (let turn = 0; turn < 100; turn++) await new Promise(resolve => setImmediate(resolve)) // whoever does not wait is through
      ctx.contribute(LlmLogins, { status: () => 'authenticated', accessToken: async () => 'access' })
    }
  })
  const { waitFor } = await start(t, { toml, last: [late] })

  const { payload } = await waitFor(({ type }) => type === modelCatalogChanged.type)

  assert.deepEqual((payload as { failed: unknown }).failed, [])
  assert.equal(asked[0]?.headers.authorization, 'Bearer access')
})

test('the interval works on a server: a list that grows is found without a client', async t => {
  let count = 0
  const { url } = await listServer(t, () => ({ data: Array.from({ length: ++count }, (_, n) => ({ id: `m${n}`, context_length: 10 })) }))
  const toml = discovering(url).replace('refresh_interval_ms = 0', 'refresh_interval_ms = 5')
  const { waitFor } = await start(t, { toml })

  const grown = await waitFor(({ type, payload }) => {
    const { changed } = payload as { changed?: { added: number }[] }
    return type === modelCatalogChanged.type && changed?.[0]?.added === 1 && count > 1
  })

  assert.equal(grown.type, modelCatalogChanged.type)
})

test('a pack that goes leaves no refresh timer behind', async t => {
  const interval = 5_999_999
  const armed = t.mock.method(globalThis, 'setTimeout')
  const cleared = t.mock.method(globalThis, 'clearTimeout')
  const { kernel } = await start(t, { toml: `[model_catalog]\nrefresh_on_start = false\nrefresh_interval_ms = ${interval}\n` })

  await kernel.unload('providers')

  const timers = armed.mock.calls.filter(({ arguments: [, ms] }) => ms === interval).map(({ result }) => result)
  assert.ok(timers.length > 0)
  const gone = cleared.mock.calls.map(({ arguments: [timer] }) => timer)
  assert.deepEqual(
    timers.filter(timer => !gone.includes(timer)),
    []
  )
})
