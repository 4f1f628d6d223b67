/** GET and POST /api/v1/config through the front door. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Config, configChanged, patchConfig, readConfig } from '../../../features/config/index.ts'
import config from '../../../features/config/pack.ts'
import llm from '../../../features/llm/pack.ts'
import { definePack } from '../../../kernel/index.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'

async function homeWith(toml: string): Promise<string> {
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), toml)
  return home
}

test('a fresh home answers the whole object with its defaults and writes no file', async t => {
  const { call, home } = await startTestKernel(t, { packs: [config] })

  const { code, data } = await call(readConfig)

  assert.equal(code, 0)
  assert.deepEqual(data.providers, {})
  assert.deepEqual(data.models, {})
  assert.equal(data.yolo, false)
  assert.equal(data.default_permission_mode, 'manual')
  assert.deepEqual((data as Record<string, unknown>).loop_control, {
    maxAttemptsPerStep: 10,
    reservedContextSize: 50_000,
    compactionTriggerRatio: 0.85
  })
  assert.deepEqual((data as Record<string, unknown>).subagent, { timeoutMs: 7_200_000 })
  assert.deepEqual(data.raw, {})
  await assert.rejects(readFile(join(home, 'config.toml')), { code: 'ENOENT' })
})

test('a patch merges tables, replaces arrays and scalars, keeps what is null, and is announced once', async t => {
  const home = await homeWith('extra_skill_dirs = ["/a", "/b"]\n\n[loop_control]\nmax_steps_per_turn = 7\n')
  const { call, events } = await startTestKernel(t, { packs: [config], home })

  const body = {
    loopControl: { maxAttemptsPerStep: 3, max_steps_per_turn: null },
    extra_skill_dirs: ['/c'],
    telemetry: null,
    default_model: 'p/m'
  }
  const { code, data } = await call(patchConfig, { body })

  assert.equal(code, 0)
  const all = data as Record<string, unknown>
  assert.deepEqual(all.loop_control, {
    maxStepsPerTurn: 7,
    maxAttemptsPerStep: 3,
    reservedContextSize: 50_000,
    compactionTriggerRatio: 0.85
  })
  assert.deepEqual(all.extra_skill_dirs, ['/c'])
  assert.equal(data.default_model, 'p/m')
  assert.deepEqual(data.raw, {
    extra_skill_dirs: ['/c'],
    default_model: 'p/m',
    loop_control: { max_steps_per_turn: 7, max_attempts_per_step: 3 }
  })
  const changed_fields = ['loop_control', 'extra_skill_dirs', 'default_model']
  assert.deepEqual(events, [{ type: configChanged.type, payload: { changed_fields, changedFields: changed_fields, config: data } }])
})

test('names that users choose keep their spelling', async t => {
  const { call, home } = await startTestKernel(t, { packs: [config] })

  await call(patchConfig, {
    body: {
      providers: { myProvider: { type: 'compat_chat', apiKey: 'k', customHeaders: { 'X-My_Head': 'a' }, env: { SOME_NAME: 'b' } } },
      models: { 'p/ModelName': { provider: 'myProvider', model: 'M', maxContextSize: 1000 } },
      experimental: { 'secondary-model': true, camelFlag: false },
      secondary_model: { models: { 'a/B_c': 'cheap' }, default_model: 'a/B_c' }
    }
  })

  const { parse } = await import('smol-toml')
  assert.deepEqual(JSON.parse(JSON.stringify(parse(await readFile(join(home, 'config.toml'), 'utf8')))), {
    providers: { myProvider: { type: 'compat_chat', api_key: 'k', custom_headers: { 'X-My_Head': 'a' }, env: { SOME_NAME: 'b' } } },
    models: { 'p/ModelName': { provider: 'myProvider', model: 'M', max_context_size: 1000 } },
    experimental: { 'secondary-model': true, camelFlag: false },
    secondary_model: { models: { 'a/B_c': 'cheap' }, default_model: 'a/B_c' }
  })
  const { data } = await call(readConfig)
  assert.deepEqual(data.providers, { myProvider: { type: 'compat_chat', has_api_key: true } })
  assert.deepEqual(data.models, { 'p/ModelName': { provider: 'myProvider', model: 'M', maxContextSize: 1000 } })
})

test('yolo is shorthand one way only', async t => {
  const { call, events } = await startTestKernel(t, { packs: [config] })

  const on = (await call(patchConfig, { body: { yolo: true } })).data
  assert.equal(on.yolo, true)
  assert.equal(on.default_permission_mode, 'yolo')
  assert.deepEqual((events[0]!.payload as { changed_fields: string[] }).changed_fields, ['yolo', 'default_permission_mode'])
  const still = (await call(patchConfig, { body: { yolo: false } })).data
  assert.equal(still.default_permission_mode, 'yolo')
  assert.equal(events.length, 1)
  await call(patchConfig, { body: { default_permission_mode: 'manual' } })
  await call(patchConfig, { body: { default_permission_mode: 'manual' } })
  assert.deepEqual(
    events.map(({ payload }) => (payload as { changed_fields: string[] }).changed_fields).slice(1),
    [['default_permission_mode', 'yolo'], ['default_permission_mode']],
    'what follows from a key that changed has changed, too'
  )
})

test('an empty patch, unknown keys and raw write nothing and announce nothing', async t => {
  const home = await homeWith('# mine\n')
  const { call, events } = await startTestKernel(t, { packs: [config], home })

  for (const body of [{}, { nonsense: { a: 1 } }, { raw: { telemetry: true } }, { telemetry: null }]) {
    assert.equal((await call(patchConfig, { body })).code, 0)
  }

  assert.equal(await readFile(join(home, 'config.toml'), 'utf8'), '# mine\n')
  assert.deepEqual(events, [])
})

test('one invalid domain refuses the whole patch with the field named as it was sent', async t => {
  const { call, events, home } = await startTestKernel(t, { packs: [config] })
  const refused = async (body: object, path: string) => {
    const answer = await call(patchConfig, { body: { default_model: 'x', ...body } as never })
    assert.equal(answer.code, 40001)
    assert.equal(answer.details?.[0]?.path, path)
  }

  await refused({ telemetry: 'yes' }, 'body.telemetry')
  await refused({ default_permission_mode: 'other' }, 'body.default_permission_mode')
  await refused({ defaultPermissionMode: 'other' }, 'body.defaultPermissionMode')
  await refused({ loop_control: { maxStepsPerTurn: -1 } }, 'body.loop_control.maxStepsPerTurn')
  await refused({ loop_control: { max_steps_per_turn: 'x' } }, 'body.loop_control.max_steps_per_turn')
  await refused({ hooks: [{ event: 'Stop', command: '' }] }, 'body.hooks.0.command')
  await refused({ hooks: [{ event: 'Stop', command: 'x', extra: 1 }] }, 'body.hooks.0.extra')
  await refused({ yolo: 'true' }, 'body.yolo')
  await refused({ providers: [] }, 'body.providers')
  await assert.rejects(readFile(join(home, 'config.toml')), { code: 'ENOENT' })
  assert.deepEqual(events, [])
})

test('sending back what GET answered erases nothing', async t => {
  const toml =
    '[providers.p]\ntype = "svc"\napi_key = "k-1"\nbase_url = "https://user:pass@h/v1?api_key=zz"\n[services.svc_search]\napi_key = "k-2"\n'
  const home = await homeWith(toml)
  const { call } = await startTestKernel(t, { packs: [config], home })
  const { data } = await call(readConfig)

  assert.equal((await call(patchConfig, { body: data as never })).code, 0)

  const { parse } = await import('smol-toml')
  const after = JSON.parse(JSON.stringify(parse(await readFile(join(home, 'config.toml'), 'utf8'))))
  const before = JSON.parse(JSON.stringify(parse(toml)))
  assert.deepEqual(after.providers, before.providers)
  assert.deepEqual(after.services, before.services)
})

test('an unparsable file keeps the last good content and blocks writes with the position', async t => {
  const home = await homeWith('default_model = "a"\n')
  const { call } = await startTestKernel(t, { packs: [config], home })
  assert.equal((await call(readConfig)).data.default_model, 'a')
  await writeFile(join(home, 'config.toml'), 'default_model = "a"\napi_key = sk-hidden\n')

  assert.equal((await call(readConfig)).data.default_model, 'a')
  const refused = await call(patchConfig, { body: { default_model: 'b' } })
  assert.equal(refused.code, 40001)
  assert.match(refused.msg, /line 2, column \d+/)
  assert.doesNotMatch(JSON.stringify(refused), /sk-hidden/)
  assert.equal(await readFile(join(home, 'config.toml'), 'utf8'), 'default_model = "a"\napi_key = sk-hidden\n')

  await writeFile(join(home, 'config.toml'), 'default_model = "c"\n')
  assert.equal((await call(patchConfig, { body: { telemetry: true } })).code, 0)
  assert.equal((await call(readConfig)).data.default_model, 'c')
})

test('an invalid domain falls back to its default and the others stay', async t => {
  const home = await homeWith('telemetry = true\n[loop_control]\nmax_steps_per_turn = "many"\n')
  const { call } = await startTestKernel(t, { packs: [config], home })

  const data = (await call(readConfig)).data as Record<string, unknown>

  assert.equal(data.telemetry, true)
  assert.equal((data.loop_control as Record<string, unknown>).maxStepsPerTurn, undefined)
  assert.equal((await call(patchConfig, { body: { loop_control: { maxStepsPerTurn: 5 } } })).code, 0)
})

test('a patch that asks for nothing answers what the file holds at that moment, too', async t => {
  const home = await homeWith('default_permission_mode = "manual"\n')
  const { call } = await startTestKernel(t, { packs: [config], home })
  for (const [body, mode] of [
    [{}, 'auto'],
    [{ yolo: false }, 'yolo']
  ] as const) {
    await writeFile(join(home, 'config.toml'), `default_permission_mode = "${mode}"\n`)

    const { data } = await call(patchConfig, { body })

    assert.equal(data.default_permission_mode, mode)
  }
})

test('an edit by hand is picked up and announced', async t => {
  const { waitFor, home } = await startTestKernel(t, { packs: [config] })

  await writeFile(join(home, 'config.toml'), 'telemetry = true\n')

  const event = await waitFor(({ type }) => type === configChanged.type)
  assert.deepEqual((event.payload as { changed_fields: string[] }).changed_fields, ['telemetry'])
})

test('an edit that comes before anybody watches the file is announced, too', async t => {
  const home = await freshDir()
  const early = definePack({
    name: 'early',
    needs: { config: Config },
    setup: () => writeFileSync(join(home, 'config.toml'), 'telemetry = true\n')
  })
  const { waitFor } = await startTestKernel(t, { packs: [config, early], home })

  const event = await waitFor(({ type }) => type === configChanged.type)
  assert.deepEqual((event.payload as { changed_fields: string[] }).changed_fields, ['telemetry'])
})

test('a table of services that nobody reads may hold anything', async t => {
  const home = await homeWith('[services.web_fetch]\nbase_url = 5\n')
  const { call, kernel } = await startTestKernel(t, { packs: [config], home })

  assert.equal((await call(patchConfig, { body: { services: { other: { base_url: 5 } } } })).code, 0)
  const { code, data } = await call(readConfig)
  assert.equal(code, 0)
  assert.deepEqual((data.raw as Record<string, unknown>).services, { web_fetch: { base_url: 5 }, other: { base_url: 5 } })
  assert.deepEqual(kernel.features(), [{ name: 'config', state: 'Active', meta: {} }])
})

test('a refused patch names every wrong field: those that miss the shape, and what is wrong beside them', async t => {
  const { rest } = await startTestKernel(t, { packs: [config, llm] })
  const refused = async (body: object) => {
    const { code, details } = await rest.json('POST', '/api/v1/config', body)
    assert.equal(code, 40001)
    return (details as { path: string }[]).map(({ path }) => path.replace(/^body\./, ''))
  }

  const provider = { type: 7, base_url: 'nourl', oauth: { storage: 'drawer', key: 'k' }, custom_headers: { a: 1, b: 'a\nb' } }
  assert.deepEqual((await refused({ providers: { p: provider } })).toSorted(), [
    'providers.p.base_url',
    'providers.p.custom_headers.a',
    'providers.p.custom_headers.b',
    'providers.p.oauth.storage',
    'providers.p.type'
  ])
  assert.deepEqual(await refused({ models: { m: { provider: 'p', max_context_size: 'much', base_url: 'nourl' } } }), [
    'models.m.model',
    'models.m.max_context_size',
    'models.m.base_url'
  ])
  assert.deepEqual(await refused({ services: { svc_search: { base_url: 'nourl' }, svc_fetch: { api_key: 5, base_url: 6 } } }), [
    'services.svc_fetch.base_url',
    'services.svc_fetch.api_key',
    'services.svc_search.base_url'
  ])
})
