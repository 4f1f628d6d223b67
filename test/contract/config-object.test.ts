/** `GET /api/v1/config`: every field of the configuration object, over HTTP, from a fresh home (contract 1, Configuration object). */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { test } from 'node:test'
import { parse } from 'smol-toml'
import { configScene, type JsonObject } from '../helpers/config-scene.ts'
import { schemaJudge } from '../helpers/documents.ts'

test('a fresh home answers every field with its type and default, and no file appears', async t => {
  const { get, home } = await configScene(t)

  const { providers, models, raw, ...rest } = await get()

  assert.deepEqual({ providers, models, raw }, { providers: {}, models: {}, raw: {} })
  for (const name of ['default_provider', 'default_model']) assert.ok(!(name in rest), name)
  const expected: JsonObject = {
    thinking: { enabled: true },
    plan_mode: false,
    yolo: false,
    default_permission_mode: 'manual',
    default_plan_mode: false,
    permission: {},
    hooks: [],
    services: {},
    merge_all_available_skills: true,
    extra_skill_dirs: [],
    loop_control: { maxAttemptsPerStep: 10, reservedContextSize: 50_000, compactionTriggerRatio: 0.85 },
    background: { keepAliveOnExit: false, bashAutoBackgroundOnTimeout: true, bashTaskTimeoutS: 600, killGracePeriodMs: 5000 },
    subagent: { timeoutMs: 7_200_000 },
    secondary_model: {},
    experimental: {},
    telemetry: false,
    model_catalog: { refreshIntervalMs: 21_600_000, refreshOnStart: true }
  }
  for (const [name, value] of Object.entries(expected)) assert.deepEqual(rest[name], value, name)
  assert.ok(!(await readdir(home)).includes('config.toml'))
})

const everything = `
default_provider = "p"
default_model = "p/m"
plan_mode = true
default_permission_mode = "yolo"
default_plan_mode = true
merge_all_available_skills = false
extra_skill_dirs = ["/skills"]
telemetry = true
[providers.p]
type = "compat_chat"
base_url = "https://models.example/v1"
default_model = "p/m"
api_key = "HIDE-1"
env = { SOME_URL = "HIDE-3" }
custom_headers = { "X-Trace" = "HIDE-4" }
model_source = "static"
source = { kind = "apiJson", url = "https://registry.example/api.json", api_key = "HIDE-5" }
my_own_field = 1
[providers.q]
type = "svc"
model_source = "oauth-catalog"
oauth = { storage = "file", key = "HIDE-2", oauth_host = "https://login.example" }
[models."p/m"]
provider = "p"
model = "m"
max_context_size = 1000
max_input_size = 2000
max_output_size = 10
capabilities = ["thinking"]
display_name = "M"
support_efforts = ["low"]
default_effort = "low"
off_effort = "none"
reasoning_key = "r"
adaptive_thinking = true
beta_api = true
protocol = "compat_chat"
base_url = "https://models.example/v2"
api_key = "HIDE-6"
name = "n"
aliases = ["x"]
my_own_field = 1
overrides = { max_context_size = 900, display_name = "N", api_key = "HIDE-7" }
[thinking]
enabled = false
effort = "high"
keep = "off"
[permission]
rules = [{ decision = "deny", pattern = "Bash(rm *)", scope = "project", reason = "no" }]
[[hooks]]
event = "PreToolUse"
command = "check"
matcher = "Bash"
timeout = 600
[services.svc_search]
base_url = "https://search.example"
api_key = "HIDE-8"
[services.svc_fetch]
oauth = { storage = "file", key = "HIDE-9" }
custom_headers = { Authorization = "HIDE-10" }
[services.my_service]
base_url = "https://mine.example"
[loop_control]
max_steps_per_turn = 0
max_attempts_per_step = 0
max_ralph_iterations = -1
reserved_context_size = 0
compaction_trigger_ratio = 0.5
[background]
max_running_tasks = 1
keep_alive_on_exit = true
bash_auto_background_on_timeout = false
bash_task_timeout_s = 0
kill_grace_period_ms = 0
print_wait_ceiling_s = 1
print_background_mode = "steer"
print_max_turns = 1
[subagent]
timeout_ms = 0
[secondary_model]
default_model = "p/m"
models = { "p/m" = "quick" }
force = false
model = "p/m"
max_context_size = 1
max_input_size = 1
max_output_size = 1
capabilities = ["thinking"]
display_name = "S"
reasoning_key = "r"
adaptive_thinking = false
support_efforts = ["low"]
default_effort = "low"
off_effort = "none"
api_key = "HIDE-11"
[experimental]
"secondary-model" = true
my_flag = false
[model_catalog]
refresh_interval_ms = 0
refresh_on_start = false
[unmodelled]
access_token = "HIDE-12"
some_field = 1
`

const shown = {
  default_provider: 'p',
  default_model: 'p/m',
  plan_mode: true,
  yolo: true,
  default_permission_mode: 'yolo',
  default_plan_mode: true,
  merge_all_available_skills: false,
  extra_skill_dirs: ['/skills'],
  telemetry: true,
  providers: {
    p: { type: 'compat_chat', base_url: 'https://models.example/v1', default_model: 'p/m', has_api_key: true },
    q: { type: 'svc', has_api_key: false }
  },
  models: {
    'p/m': {
      provider: 'p',
      model: 'm',
      maxContextSize: 1000,
      maxInputSize: 2000,
      maxOutputSize: 10,
      capabilities: ['thinking'],
      displayName: 'M',
      supportEfforts: ['low'],
      defaultEffort: 'low',
      offEffort: 'none',
      reasoningKey: 'r',
      adaptiveThinking: true,
      betaApi: true,
      protocol: 'compat_chat',
      baseUrl: 'https://models.example/v2',
      name: 'n',
      aliases: ['x'],
      myOwnField: 1,
      overrides: { maxContextSize: 900, displayName: 'N' }
    }
  },
  thinking: { enabled: false, effort: 'high', keep: 'off' },
  permission: { rules: [{ decision: 'deny', pattern: 'Bash(rm *)', scope: 'project', reason: 'no' }] },
  hooks: [{ event: 'PreToolUse', command: 'check', matcher: 'Bash', timeout: 600 }],
  services: { svcSearch: { baseUrl: 'https://search.example' }, svcFetch: {}, myService: { baseUrl: 'https://mine.example' } },
  loop_control: {
    maxStepsPerTurn: 0,
    maxAttemptsPerStep: 0,
    maxRalphIterations: -1,
    reservedContextSize: 0,
    compactionTriggerRatio: 0.5
  },
  background: {
    maxRunningTasks: 1,
    keepAliveOnExit: true,
    bashAutoBackgroundOnTimeout: false,
    bashTaskTimeoutS: 0,
    killGracePeriodMs: 0,
    printWaitCeilingS: 1,
    printBackgroundMode: 'steer',
    printMaxTurns: 1
  },
  subagent: { timeoutMs: 0 },
  secondary_model: {
    defaultModel: 'p/m',
    models: { 'p/m': 'quick' },
    force: false,
    model: 'p/m',
    maxContextSize: 1,
    maxInputSize: 1,
    maxOutputSize: 1,
    capabilities: ['thinking'],
    displayName: 'S',
    reasoningKey: 'r',
    adaptiveThinking: false,
    supportEfforts: ['low'],
    defaultEffort: 'low',
    offEffort: 'none'
  },
  experimental: { 'secondary-model': true, my_flag: false },
  model_catalog: { refreshIntervalMs: 0, refreshOnStart: false }
}

test('every field of the file is answered in camelCase below the top, without one secret', async t => {
  const { get, patch } = await configScene(t, everything)

  const answer = await get()

  for (const [name, value] of Object.entries(shown)) assert.deepEqual(answer[name], value, name)
  const posted = await patch({ default_plan_mode: false })
  assert.doesNotMatch(JSON.stringify([answer, posted]), /HIDE/)
})

test('raw is the file in its own spelling, unmodelled fields included, and keeps everything but the secrets', async t => {
  const { get } = await configScene(t, everything)

  const { raw } = await get()

  const file = parse(everything) as JsonObject
  for (const name of ['api_key', 'env', 'custom_headers']) delete file.providers.p[name]
  delete file.providers.q.oauth
  delete file.providers.p.source.api_key
  delete file.models['p/m'].api_key
  delete file.models['p/m'].overrides.api_key
  file.services = { ...file.services, svc_search: { base_url: 'https://search.example' }, svc_fetch: {} }
  delete file.secondary_model.api_key
  delete file.unmodelled.access_token
  assert.deepEqual(raw, JSON.parse(JSON.stringify(file)))
})

test('numbers and dates that JSON does not have are answered as text, and such an answer sent back changes nothing', async t => {
  const toml = `default_plan_mode = false
[odd]
day = 1979-05-27
when = 1979-05-27T07:32:00Z
least = -inf
none = nan
[loop_control]
my_time = 07:32:00
my_most = inf
my_number = 9007199254740993
`
  const { get, patch, read } = await configScene(t, toml)

  const answer = await get()

  assert.deepEqual(answer.raw.odd, { day: '1979-05-27', when: '1979-05-27T07:32:00.000Z', least: '-inf', none: 'nan' })
  const { myTime, myMost, myNumber } = answer.loop_control
  assert.deepEqual([myTime.slice(0, 8), myMost, myNumber], ['07:32:00', 'inf', '9007199254740993'])
  await patch({ loop_control: { myTime, myMost, myNumber }, default_plan_mode: true })
  assert.equal(await read(), toml.replace('mode = false', 'mode = true'))
})

test('yolo follows default_permission_mode', async t => {
  const { patch, write, get } = await configScene(t)
  for (const [mode, yolo] of [
    ['auto', false],
    ['yolo', true],
    ['manual', false]
  ] as const) {
    const { default_permission_mode, ...answer } = await patch({ default_permission_mode: mode })
    assert.deepEqual([default_permission_mode, answer.yolo], [mode, yolo])
  }
  await write('default_permission_mode = "yolo"\n')
  assert.equal((await get()).yolo, true)
})

test('the description of the interface knows every inner field of both directions', async t => {
  const { server, get } = await configScene(t, everything)
  const document = JSON.parse((await server.rest.raw('GET', '/openapi.json')).body.toString('utf8')) as object
  const judge = schemaJudge(document)
  const route = ['paths', '/api/v1/config']
  const reply = [...route, 'get', 'responses', '200', 'content', 'application/json', 'schema']
  const body = [...route, 'post', 'requestBody', 'content', 'application/json', 'schema']
  const answer = (data: JsonObject) => judge(reply, { code: 0, msg: 'success', data, request_id: '01M7ZW6KGPGZV37P52XQRMSHHC' })
  const data = await get()
  assert.equal(answer(data), '')
  const { raw: _, yolo: __, ...patch } = data
  assert.equal(judge(body, patch), '')

  for (const place of leaves(shown)) {
    if (/myOwnField|myService/.test(place.join())) continue // unknown fields may hold anything
    const wrong = structuredClone(data)
    const parent = place.slice(0, -1).reduce((here, key) => here[key], wrong)
    parent[place.at(-1)!] = { no: 'such thing' }
    assert.notEqual(answer(wrong), '', `reply: ${place.join('.')}`)
    if (place[0] !== 'yolo' && place.at(-1) !== 'has_api_key') assert.notEqual(judge(body, wrong), '', `body: ${place.join('.')}`)
  }
})

/** Paths of all scalars. */
function leaves(value: unknown): string[][] {
  if (typeof value !== 'object' || value === null) return [[]]
  return Object.entries(value).flatMap(([key, item]) => leaves(item).map(path => [key, ...path]))
}
