/** `POST /api/v1/config`: the merge rules and every refusal, over HTTP (contract 1, Configuration). */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { configScene, type JsonObject } from '../helpers/config-scene.ts'

const model = { provider: 'p', model: 'm', max_context_size: 1000 }

test('tables merge at any depth, lists and scalars replace, null and absent keep', async t => {
  const { patch, table } = await configScene(t)
  await patch({
    default_model: 'a',
    extra_skill_dirs: ['/a', '/b'],
    models: { a: { ...model, capabilities: ['thinking', 'image_in'], overrides: { display_name: 'A', max_output_size: 5 } } },
    loop_control: { max_steps_per_turn: 3, max_attempts_per_step: 4 }
  })

  await patch({
    default_model: null,
    default_provider: null,
    extra_skill_dirs: ['/c'],
    hooks: null,
    models: { a: { capabilities: ['thinking'], provider: null, overrides: { max_output_size: 6, reasoning_key: null } }, b: model },
    loop_control: { max_steps_per_turn: null, reserved_context_size: 7 },
    thinking: null
  })

  assert.deepEqual(await table(), {
    default_model: 'a',
    extra_skill_dirs: ['/c'],
    loop_control: { max_steps_per_turn: 3, max_attempts_per_step: 4, reserved_context_size: 7 },
    models: { a: { ...model, capabilities: ['thinking'], overrides: { display_name: 'A', max_output_size: 6 } }, b: model }
  })
})

test('snake_case and camelCase mean the same at every depth; names that users choose stay as they are', async t => {
  const { patch, table } = await configScene(t)
  const names = { 'X-My_Head': 'a', myHead: 'b' }
  const body = (camel: boolean): JsonObject => {
    const key = (snake: string, other: string) => (camel ? other : snake)
    return {
      [key('default_permission_mode', 'defaultPermissionMode')]: 'auto',
      providers: {
        myProvider: {
          type: 'svc',
          [key('base_url', 'baseUrl')]: 'https://a.example',
          [key('custom_headers', 'customHeaders')]: names,
          env: { SOME_NAME: 'x', otherName: 'y' },
          oauth: { storage: 'file', key: 'k', [key('oauth_host', 'oauthHost')]: 'https://b.example' }
        },
        my_provider: { type: 'svc' }
      },
      models: {
        'myProvider/Some_Model.v2': {
          provider: 'myProvider',
          model: 'm',
          [key('max_context_size', 'maxContextSize')]: 1,
          overrides: { [key('support_efforts', 'supportEfforts')]: ['low'] }
        }
      },
      experimental: { 'my-flag': true, myFlag: false, my_flag: true },
      [key('secondary_model', 'secondaryModel')]: {
        models: { 'myProvider/Some_Model.v2': 'quick', camelAlias: 'x', snake_alias: 'y' },
        [key('default_model', 'defaultModel')]: 'camelAlias'
      },
      services: { [key('svc_search', 'svcSearch')]: { [key('custom_headers', 'customHeaders')]: names } },
      background: { [key('bash_task_timeout_s', 'bashTaskTimeoutS')]: 1 }
    }
  }
  await patch(body(false))
  const expected = await table()
  assert.deepEqual(expected, body(false))

  const other = await configScene(t)
  await other.patch(body(true))

  assert.deepEqual(await other.table(), expected)
})

test('two spellings of one key are one key: tables merge, of two values the later counts, and null never does', async t => {
  const { patch, table } = await configScene(t)

  await patch({
    loop_control: { max_steps_per_turn: 1, maxStepsPerTurn: 2, reservedContextSize: 5, reserved_context_size: null },
    loopControl: { maxAttemptsPerStep: 3 },
    LOOP_CONTROL: null,
    defaultModel: 'first',
    default_model: 'second'
  })

  assert.deepEqual(await table(), {
    loop_control: { max_steps_per_turn: 2, reserved_context_size: 5, max_attempts_per_step: 3 },
    default_model: 'second'
  })
})

test('raw, unknown keys at the top and yolo: false are ignored; unknown keys inside a domain are kept', async t => {
  const { patch, read, table } = await configScene(t, '# mine\n')

  await patch({ raw: { telemetry: true }, nonsense: { a: 1 }, constructor: 1, toString: 'x', yolo: false })
  assert.equal(await read(), '# mine\n')
  await patch({ raw: 7, loop_control: { my_field: [1, { deepKey: 'a' }], constructor: { a: 1 } } })

  assert.deepEqual(await table(), { loop_control: { my_field: [1, { deep_key: 'a' }], constructor: { a: 1 } } })
})

test('keys with a meaning of their own in JavaScript are names like any other', async t => {
  const { post, get, server, table } = await configScene(t)

  const record = JSON.stringify(model)
  const { code } = await post(
    `{"models":{"__proto__":${record},"constructor":${record},"hasOwnProperty":${record}},"__proto__":{"telemetry":true}}`
  )

  assert.equal(code, 0)
  assert.deepEqual(Object.keys((await table()).models), ['constructor', 'hasOwnProperty'])
  assert.deepEqual(Object.keys((await get()).models), ['constructor', 'hasOwnProperty'])
  const { items } = (await server.rest.json('GET', '/api/v1/models')).data as { items: { model: string }[] }
  assert.deepEqual(
    items.map(item => item.model),
    ['constructor', 'hasOwnProperty']
  )
})

test('yolo: true sets the mode unless the patch names one itself', async t => {
  const { patch } = await configScene(t)

  assert.equal((await patch({ yolo: true })).default_permission_mode, 'yolo')
  assert.equal((await patch({ yolo: false })).default_permission_mode, 'yolo')
  assert.equal((await patch({ yolo: true, default_permission_mode: 'auto' })).yolo, false)
  assert.equal((await patch({ yolo: true, defaultPermissionMode: null })).default_permission_mode, 'yolo')
})

const wrong: readonly (readonly [body: JsonObject, path: string])[] = [
  [{ default_model: 5 }, 'default_model'],
  [{ defaultModel: 5 }, 'defaultModel'],
  [{ default_provider: [] }, 'default_provider'],
  [{ telemetry: 'yes' }, 'telemetry'],
  [{ plan_mode: 1 }, 'plan_mode'],
  [{ default_plan_mode: 'x' }, 'default_plan_mode'],
  [{ yolo: 'true' }, 'yolo'],
  [{ default_permission_mode: 'ask' }, 'default_permission_mode'],
  [{ merge_all_available_skills: {} }, 'merge_all_available_skills'],
  [{ extra_skill_dirs: 'a' }, 'extra_skill_dirs'],
  [{ extraSkillDirs: ['a', 1] }, 'extraSkillDirs.1'],
  [{ providers: [] }, 'providers'],
  [{ providers: { p: 5 } }, 'providers.p'],
  [{ providers: { p: { type: 5 } } }, 'providers.p.type'],
  [{ providers: { p: { env: { A: 5 } } } }, 'providers.p.env.A'],
  [{ providers: { p: { oauth: { storage: 'cloud', key: 'k' } } } }, 'providers.p.oauth.storage'],
  [{ providers: { p: { modelSource: 'somewhere' } } }, 'providers.p.modelSource'],
  [{ models: { 'gpt-4.1': { ...model, max_context_size: 0 } } }, 'models.gpt-4.1.max_context_size'],
  [{ models: { 'a.b/c.d': { provider: 'p', model: 'm', maxContextSize: 1.5 } } }, 'models.a.b/c.d.maxContextSize'],
  [{ models: { m: { provider: 'p', model: 'm' } } }, 'models.m.max_context_size'],
  [{ models: { m: { ...model, maxInputSize: 0 } } }, 'models.m.maxInputSize'],
  [{ models: { m: { ...model, overrides: { adaptive_thinking: 'x' } } } }, 'models.m.overrides.adaptive_thinking'],
  [{ models: { m: { ...model, capabilities: 'thinking' } } }, 'models.m.capabilities'],
  [{ models: { 'two\nlines': 5 } }, 'models.two\nlines'],
  [{ thinking: { enabled: 'yes' } }, 'thinking.enabled'],
  [{ permission: { rules: {} } }, 'permission.rules'],
  [{ permission: { rules: [{ decision: 'allow', pattern: '' }] } }, 'permission.rules.0.pattern'],
  [{ permission: { rules: [{ decision: 'maybe', pattern: 'Bash' }] } }, 'permission.rules.0.decision'],
  [{ permission: { rules: [{ decision: 'ask', pattern: 'Bash', scope: 'world' }] } }, 'permission.rules.0.scope'],
  [{ permission: { rules: [{ pattern: 'Bash' }] } }, 'permission.rules.0.decision'],
  [{ hooks: {} }, 'hooks'],
  [{ hooks: [{ event: 'Never', command: 'x' }] }, 'hooks.0.event'],
  [{ hooks: [{ event: 'Stop', command: '' }] }, 'hooks.0.command'],
  [{ hooks: [{ event: 'Stop', command: 'x', matcher: 5 }] }, 'hooks.0.matcher'],
  [{ hooks: [{ event: 'Stop', command: 'x', timeout: 0 }] }, 'hooks.0.timeout'],
  [{ hooks: [{ event: 'Stop', command: 'x', timeout: 601 }] }, 'hooks.0.timeout'],
  [{ hooks: [{ event: 'Stop', command: 'x', timeout: 1.5 }] }, 'hooks.0.timeout'],
  [{ hooks: [{ event: 'Stop', command: 'x', extra: 1 }] }, 'hooks.0.extra'],
  [{ services: { svcSearch: { baseUrl: 5 } } }, 'services.svcSearch.baseUrl'],
  [{ services: { svc_fetch: { custom_headers: { 'X-A': 5 } } } }, 'services.svc_fetch.custom_headers.X-A'],
  [{ loop_control: { maxStepsPerTurn: -1 } }, 'loop_control.maxStepsPerTurn'],
  [{ loop_control: { max_attempts_per_step: -1 } }, 'loop_control.max_attempts_per_step'],
  [{ LoopControl: { MaxRalphIterations: -2 } }, 'LoopControl.MaxRalphIterations'],
  [{ loop_control: { reservedContextSize: 0.5 } }, 'loop_control.reservedContextSize'],
  [{ loop_control: { compactionTriggerRatio: 0.49 } }, 'loop_control.compactionTriggerRatio'],
  [{ loop_control: { compactionTriggerRatio: 1 } }, 'loop_control.compactionTriggerRatio'],
  [{ background: { maxRunningTasks: 0 } }, 'background.maxRunningTasks'],
  [{ background: { bashTaskTimeoutS: -1 } }, 'background.bashTaskTimeoutS'],
  [{ background: { killGracePeriodMs: -1 } }, 'background.killGracePeriodMs'],
  [{ background: { printWaitCeilingS: 0 } }, 'background.printWaitCeilingS'],
  [{ background: { printBackgroundMode: 'wait' } }, 'background.printBackgroundMode'],
  [{ background: { printMaxTurns: 0 } }, 'background.printMaxTurns'],
  [{ subagent: { timeoutMs: -1 } }, 'subagent.timeoutMs'],
  [{ secondary_model: { models: { a: 5 } } }, 'secondary_model.models.a'],
  [{ secondary_model: { force: 'x' } }, 'secondary_model.force'],
  [{ experimental: { flag: 'on' } }, 'experimental.flag'],
  [{ model_catalog: { refreshIntervalMs: -1 } }, 'model_catalog.refreshIntervalMs'],
  [{ loop_control: { list: [{ someKey: [null] }] } }, 'loop_control.list.0.someKey.0'],
  [{ extra_skill_dirs: [null] }, 'extra_skill_dirs.0'],
  [{ default_model: 'half a \ud800 pair' }, 'default_model']
]

/** Wrong in several ways at once. */
const everyWrong: readonly (readonly [body: JsonObject, paths: readonly string[]])[] = [
  [{ default_model: 5, hooks: 3 }, ['default_model', 'hooks']],
  [{ yolo: 'x', telemetry: 'x', models: 5, defaultPermissionMode: 'ask' }, ['yolo', 'telemetry', 'models', 'defaultPermissionMode']],
  [
    { extra_skill_dirs: [null, 5], default_model: 'half a \ud800 pair', subagent: { timeoutMs: -1 } },
    ['extra_skill_dirs.0', 'extra_skill_dirs.1', 'default_model', 'subagent.timeoutMs']
  ],
  [
    { providers: { a: { type: 5 }, b: { type: 'svc', api_key: 'k', oauth: { storage: 'file', key: 's' } } }, thinking: { enabled: 1 } },
    ['providers.a.type', 'providers.b.oauth', 'thinking.enabled']
  ],
  [
    { models: { a: { ...model, overrides: { provider: 'q' } }, b: 5, c: { provider: 1 } } },
    ['models.a.overrides.provider', 'models.b', 'models.c.provider', 'models.c.model', 'models.c.max_context_size']
  ]
]

test('a wrong value is named as it was sent, and the good ones beside it are not written either', async t => {
  const { refused, home } = await configScene(t)

  for (const [body, path] of wrong) {
    const paths = await refused({ default_plan_mode: true, subagent: { timeout_ms: 5 }, ...body })
    assert.deepEqual(paths, [`body.${path}`], JSON.stringify(body))
  }
  const several = await refused({ hooks: [5], loopControl: { maxStepsPerTurn: 'x', max_attempts_per_step: -1 }, models: { 'a.b': 5 } })
  assert.deepEqual(several.sort(), [
    'body.hooks.0',
    'body.loopControl.maxStepsPerTurn',
    'body.loopControl.max_attempts_per_step',
    'body.models.a.b'
  ])

  for (const [bodies, paths] of everyWrong) assert.deepEqual((await refused(bodies)).sort(), paths.map(path => `body.${path}`).sort())

  await assert.rejects(readFile(`${home}/config.toml`), { code: 'ENOENT' })
})

test('of thousands of wrong values the first fifty are named', async t => {
  const { refused } = await configScene(t)
  const providers = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`p${at}`, 5]))
  const paths = await refused({ providers, models: providers })
  assert.deepEqual([paths.length, paths[0], paths[49]], [50, 'body.providers.p0', 'body.providers.p49'])
})

test('the reason of a refusal says what is allowed', async t => {
  const { post } = await configScene(t)
  const reason = async (body: unknown) => (await post(body)).details?.[0]?.message

  assert.equal(await reason({ loop_control: { maxStepsPerTurn: -1 } }), 'expected integer to be greater or equal to 0')
  assert.equal(await reason({ loop_control: { max_steps_per_turn: -1 } }), 'expected integer to be greater or equal to 0')
  assert.equal(await reason({ hooks: [{ event: 'Stop', command: 'x', timeout: 601 }] }), 'expected integer to be less or equal to 600')
  assert.equal(await reason({ background: { printBackgroundMode: 'x' } }), 'expected "exit", "drain", "steer" or null')
  assert.equal(await reason({ hooks: [{ event: 'Stop', command: 5 }] }), 'expected string')
})

test("an address that is none is refused when it is written, without its text; one that the file has stands in nobody's way", async t => {
  const old = '[providers.old]\nbase_url = "models.example"\n'
  const { post, refused, patch, read } = await configScene(t, old)

  assert.deepEqual(await refused({ providers: { p: { base_url: 'user:LEAK@models.example' } } }), ['body.providers.p.base_url'])
  assert.deepEqual(await refused({ models: { 'a/b': { ...model, baseUrl: 'models.example/v1' } } }), ['body.models.a/b.baseUrl'])
  assert.deepEqual(await refused({ services: { svc_search: { base_url: 'ftp://x' } } }), ['body.services.svc_search.base_url'])
  const { msg } = (await post({ providers: { p: { base_url: 'user:LEAK@models.example' } } })) as { msg: string }
  assert.equal(msg, 'body.providers.p.base_url: must be an address that begins with http:// or https://')

  assert.equal(await read(), old)
  await patch({ providers: { old: { type: 'svc' }, p: { base_url: 'http://localhost:1/v1' } } })
})

test('a name that no path could hold is refused for a provider and a model', async t => {
  const { refused, patch } = await configScene(t, '')

  assert.deepEqual(await refused({ providers: { 'a\nb': { type: 'svc' } } }), ['body.providers.a\nb'])
  assert.deepEqual(await refused({ models: { 'a\u0000': model } }), ['body.models.a\u0000'])
  await patch({ providers: { '\u00fcn\u00ef 1': { type: 'svc' } }, models: { '\u00fc/m:1': model } })
})

test('a key or header that no request could carry is refused when it is written, without its text; blanks around a key are none of it', async t => {
  const old = '[providers.old]\napi_key = "two\\nlines"\n'
  const { post, refused, patch, read } = await configScene(t, old)

  for (const value of ['sk-1\nLEAK', 'LEAK-\u043a\u043b\u044e\u0447', 'LEAK\u0000']) {
    assert.deepEqual(await refused({ providers: { p: { api_key: value } } }), ['body.providers.p.api_key'])
    assert.deepEqual(await refused({ models: { 'a/b': { ...model, apiKey: value } } }), ['body.models.a/b.apiKey'])
    const headers = { providers: { p: { custom_headers: { 'X-Team': value } } } }
    assert.deepEqual(await refused(headers), ['body.providers.p.custom_headers.X-Team'])
    const service = { services: { svc_fetch: { api_key: value, custom_headers: { 'X-Team': value } } } }
    assert.deepEqual(await refused(service), ['body.services.svc_fetch.api_key', 'body.services.svc_fetch.custom_headers.X-Team'])
    assert.doesNotMatch(JSON.stringify(await post(headers)), /LEAK/)
  }

  for (const name of ['X Team', 'X-Team:', '\u00fc']) {
    const headers = { providers: { p: { custom_headers: { [name]: 'x' } } } }
    assert.deepEqual(await refused(headers), ['body.providers.p.custom_headers.[redacted]'])
  }
  assert.deepEqual(await refused({ providers: { p: { custom_headers: { '': 'x' } } } }), ['body.providers.p.custom_headers.'])

  assert.equal(await read(), old)
  await patch({ providers: { old: { type: 'svc' }, p: { api_key: ' sk-1\n', custom_headers: { 'X-Team': 'a', 'x_1.!': 'b' } } } })
})

test('what is no patch at all is refused', async t => {
  const { refused, server, home } = await configScene(t)

  for (const body of ['null', '[]', '"x"', '5', 'true', '{', '{"a":1}x', '[{"telemetry":true}]'])
    assert.deepEqual(await refused(body), ['body'])
  assert.deepEqual(await refused({ default_model: 'x'.repeat(1_048_576) }), ['body'])
  assert.deepEqual(await refused(`{"services":${'{"a":'.repeat(300)}1${'}'.repeat(300)}}`), ['body'])
  assert.deepEqual(await refused('{"background":{"bash_task_timeout_s":1e999}}'), ['body.background.bash_task_timeout_s'])
  const { code, details } = await server.rest.json('POST', '/api/v1/config')
  assert.deepEqual([code, details?.[0]?.path], [40001, 'body'])

  await assert.rejects(readFile(`${home}/config.toml`), { code: 'ENOENT' })
})

test('texts and names of any kind come back as they were sent', async t => {
  const { patch, get, write, read } = await configScene(t)
  const odd = [
    '\u0000\u0001\u007f\u0085\u2028',
    'a\r\n\tb',
    '"quoted" \\ \'x\'',
    '\u{1F600} é e\u0301 \ufeff',
    '#no comment',
    '',
    ' ',
    'x'.repeat(100_000)
  ]
  const experimental = Object.fromEntries(odd.map(name => [name, true]))

  await patch({ extra_skill_dirs: odd, experimental })
  await write(`# one\n${await read()}`) // the next answer comes from the file

  const answer = await get()
  assert.deepEqual(answer.extra_skill_dirs, odd)
  assert.deepEqual(answer.experimental, experimental)
  assert.deepEqual(answer.raw.experimental, experimental)
})

test('a key shows as has_api_key, an empty one clears it, and null and absent keep it', async t => {
  const { patch, server, read } = await configScene(t)
  const single = async () => (await server.rest.json('GET', '/api/v1/providers/p')).data as { api_key?: string; has_api_key: boolean }

  const given = await patch({ providers: { p: { type: 'svc', api_key: 'key-1' } } })
  assert.deepEqual(given.providers, { p: { type: 'svc', has_api_key: true } })
  for (const body of [{ base_url: 'https://a.example' }, { api_key: null }, { has_api_key: false }]) await patch({ providers: { p: body } })
  assert.equal((await single()).api_key, 'key-1')
  const cleared = await patch({ providers: { p: { apiKey: '' } } })

  assert.equal(cleared.providers.p.has_api_key, false)
  assert.deepEqual([(await single()).has_api_key, (await single()).api_key], [false, undefined])
  assert.doesNotMatch(await read(), /key-1|has_api_key/)
})

test('no patch removes a provider, a model or a list entry by leaving it out', async t => {
  const { patch } = await configScene(t)
  await patch({ providers: { p: { type: 'svc' }, q: { type: 'svc' } }, models: { a: model } })

  const { providers, models } = await patch({ providers: { p: null, q: {} }, models: {} })

  assert.deepEqual(Object.keys(providers), ['p', 'q'])
  assert.deepEqual(Object.keys(models), ['a'])
})

test('what a page sends: thinking, the default model, and the whole object back', async t => {
  const { patch, get, read } = await configScene(t, '[providers.p]\ntype = "svc"\napi_key = "k"\n')

  await patch({ thinking: { enabled: false } })
  await patch({ default_model: 'p/m' })
  assert.deepEqual((await get()).thinking, { enabled: false })
  const before = await read()
  const whole = await get()
  const after = await patch(whole)

  assert.deepEqual({ ...after, raw: 0 }, { ...whole, raw: 0 })
  assert.ok((await read()).startsWith('default_model = "p/m"\n'), before)
  assert.match(await read(), /^\[providers\.p\]\ntype = "svc"\napi_key = "k"\n/m)
})

test('an override may name every field but those that say whose model it is', async t => {
  const { refused, patch } = await configScene(t)

  for (const field of ['provider', 'model', 'protocol', 'base_url', 'baseUrl', 'beta_api', 'name', 'aliases']) {
    const value = field === 'aliases' ? ['x'] : field === 'beta_api' ? true : 'x'
    assert.deepEqual(await refused({ models: { m: { ...model, overrides: { [field]: value } } } }), [`body.models.m.overrides.${field}`])
  }
  const { models } = await patch({ models: { m: { ...model, overrides: { maxContextSize: 5, my_own: 1 } } } })

  assert.deepEqual(models.m.overrides, { maxContextSize: 5, myOwn: 1 })
})

test('an API key and a login exclude each other on one record', async t => {
  const { refused, patch, read } = await configScene(t)
  const oauth = { storage: 'file', key: 'slot' }

  assert.deepEqual(await refused({ providers: { p: { type: 'svc', api_key: 'k', oauth } } }), ['body.providers.p.oauth'])
  assert.deepEqual(await refused({ models: { m: { ...model, api_key: 'k', oauth } } }), ['body.models.m.oauth'])
  await patch({ providers: { p: { type: 'svc', api_key: '', oauth } } })
  await refused({ providers: { p: { api_key: 'k' } } })

  assert.doesNotMatch(await read(), /"k"/)
})

test('a broken entry that somebody left in the file does not stand in the way of the others', async t => {
  const toml = '[models.broken]\nprovider = "p"\n[models.fine]\nprovider = "p"\nmodel = "m"\nmax_context_size = 1\n'
  const { get, patch, refused, server, read } = await configScene(t, toml)

  assert.deepEqual(Object.keys((await get()).models), ['fine'])
  await patch({ models: { more: model } })
  const { status } = await server.rest.json('POST', '/api/v1/providers', {
    id: 'q',
    type: 'svc',
    models: [{ model: 'm', max_context_size: 1 }]
  })
  assert.equal(status, 201)
  assert.deepEqual(await refused({ models: { broken: { model: 'm' } } }), ['body.models.broken.max_context_size'])
  await patch({ models: { broken: { model: 'm', max_context_size: 2 } } })

  assert.deepEqual(Object.keys((await get()).models), ['broken', 'fine', 'more', 'q/m'])
  assert.match(await read(), /^\[models\.broken\]\nprovider = "p"\nmodel = "m"\nmax_context_size = 2\n/m)
})

test('background may be called task, and what stands there counts', async t => {
  const { get, patch, read } = await configScene(
    t,
    '[background]\nmax_running_tasks = 1\nkill_grace_period_ms = 1\n[task]\nmax_running_tasks = 2\n'
  )

  const { maxRunningTasks, killGracePeriodMs } = (await get()).background
  assert.deepEqual([maxRunningTasks, killGracePeriodMs], [2, 1])
  assert.equal((await patch({ background: { maxRunningTasks: 3 } })).background.maxRunningTasks, 3)
  assert.equal((await patch({ task: { killGracePeriodMs: 4 } })).background.killGracePeriodMs, 4)

  assert.equal(await read(), '[background]\nmax_running_tasks = 3\nkill_grace_period_ms = 4\n[task]\nmax_running_tasks = 3\n')
})
