/** Prices that model lists and registries state, and what a session costs by them. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import config from '../../../features/config/pack.ts'
import llm from '../../../features/llm/pack.ts'
import llmChat from '../../../features/llm-chat/pack.ts'
import { refreshProvider, refreshProviders } from '../../../features/providers/index.ts'
import providers from '../../../features/providers/pack.ts'
import { readSnapshot } from '../../../features/session-views/index.ts'
import { fakeUpstream } from '../../helpers/fake-upstream.ts'
import { scriptedLlm } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { startAgent } from '../agent/start.ts'
import { discovering, listServer, quiet, start } from './scene.ts'

type Models = Record<string, { cost?: unknown }>

test('prices of a model list are kept per million tokens; what is no price is left out', async t => {
  const pricing = { prompt: '0.0000008', completion: '0.000004', input_cache_read: '8e-8', input_cache_write: 0.000001 }
  const stated: readonly Record<string, unknown>[] = [
    { pricing },
    { cost: { input: 3, output: 15, cache_read: 0.3 }, pricing },
    { cost: { input: '3', output: 15 }, pricing: { prompt: '0', completion: '0' } },
    { pricing: { ...pricing, input_cache_read: '-1', input_cache_write: '' } },
    { pricing: { prompt: '-1', completion: '-1' } },
    { pricing: { prompt: '', completion: '0.1' } },
    { pricing: { prompt: '0x1', completion: 'Infinity' } },
    { pricing: { prompt: '1e300', completion: '1' } },
    { pricing: 'free', cost: [1, 2] },
    {}
  ]
  const { url } = await listServer(t, () => ({ data: stated.map((one, n) => ({ id: `m${n}`, context_length: 10, ...one })) }))
  const { call, file } = await start(t, { toml: discovering(url) })

  await call(refreshProviders)

  const costs = Object.values((await file()).models as Models).map(({ cost }) => cost)
  assert.deepEqual(costs, [
    { input: 0.8, output: 4, cache_read: 0.08, cache_write: 1 },
    { input: 3, output: 15, cache_read: 0.3 },
    { input: 0, output: 0 },
    { input: 0.8, output: 4 },
    ...Array.from({ length: 6 }, () => undefined)
  ])
})

test('a refresh owns the price, a price in overrides is the user’s', async t => {
  let cost: unknown = { input: 1, output: 2 }
  const { url } = await listServer(t, () => ({ data: [{ id: 'm', context_length: 10, cost }] }))
  const record = '[models."one/m"]\nprovider = "one"\nmodel = "m"\nmax_context_size = 10\n'
  const toml = `${discovering(url)}${record}cost = { input = 9, output = 9 }\noverrides = { cost = { input = 5, output = 6 } }\n`
  const { call, file } = await start(t, { toml })
  const refreshed = async () => {
    const { data } = await call(refreshProvider, { params: { provider_id: 'one' } })
    const { overrides, cost: price } = ((await file()).models as Record<string, Record<string, unknown>>)['one/m']!
    return [data.changed.length, price, overrides]
  }
  const own = { cost: { input: 5, output: 6 } }

  assert.deepEqual(await refreshed(), [1, { input: 1, output: 2 }, own])
  assert.deepEqual(await refreshed(), [0, { input: 1, output: 2 }, own])
  cost = undefined
  assert.deepEqual(await refreshed(), [1, undefined, own])
})

test('prices of a registry are taken over', async t => {
  const model = (cost: unknown) => ({ id: 'm', cost })
  const models = { a: model({ input: 1, output: 2, cache_write: 1.25, odd: 1 }), b: model({ input: -1, output: 2 }) }
  const { url } = await listServer(t, () => ({ one: { id: 'one', name: 'One', api: 'https://one.example', type: 'compat_chat', models } }))
  const { call, file } = await start(t, { toml: `${quiet}[providers.one]\nsource = { kind = "apiJson", url = "${url}/api.json" }\n` })

  await call(refreshProviders)

  const found = (await file()).models as Models
  assert.deepEqual([found['one/a']?.cost, found['one/b']?.cost], [{ input: 1, output: 2, cache_write: 1.25 }, undefined])
})

test('a session on a discovered model costs what its list says', async t => {
  const pricing = { prompt: '0.000002', completion: '0.00001' }
  const upstream = await fakeUpstream(t, (_body, _n, { path }) =>
    path.endsWith('/models') ? [{ status: 200, body: { data: [{ id: 'm', context_length: 10_000, pricing }] } }] : [{ text: 'done' }]
  )
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), discovering(upstream.url.replace(/\/v1$/, ''), '', 'compat_chat'))
  const agent = await startAgent(t, { ...scriptedLlm(), pack: llm }, { home, packs: [config, providers, llmChat] })
  await agent.call(refreshProviders)

  await agent.prompt('go', { model: 'one/m' })
  await agent.settled(1)

  const { usage } = (await agent.call(readSnapshot, { params: { session_id: agent.session_id } })).data.session
  assert.deepEqual([usage.input_tokens, usage.output_tokens, usage.total_cost_usd], [10, 5, 0.00007])
})
