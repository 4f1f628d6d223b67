/** Environment and command line over the file: effective at once, never written (contract 1, GET config). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RestClient, type TestContextLike } from '../../kernel/testing.ts'
import { serve } from '../helpers/cli.ts'
import { configScene, type JsonObject, settingsOf } from '../helpers/config-scene.ts'
import { withEnvironment } from '../helpers/environment.ts'
import { freshDir } from '../helpers/temp.ts'

interface Case {
  readonly variables: Readonly<Record<string, string>>
  /** What the variables make of the object. */
  readonly shown: JsonObject
  /** A patch that says the same and something else beside it. */
  readonly patch: JsonObject
  /** What of it may be in the file. */
  readonly stored: JsonObject
}

const cases: readonly Case[] = [
  {
    variables: { DISABLE_TELEMETRY: '1' },
    shown: { telemetry: false },
    patch: { telemetry: false, plan_mode: true },
    stored: { telemetry: true, plan_mode: true }
  },
  {
    variables: { LOOP_MAX_STEPS_PER_TURN: '9', LOOP_MAX_ATTEMPTS_PER_STEP: '2' },
    shown: {
      loop_control: { maxStepsPerTurn: 9, maxAttemptsPerStep: 2, reservedContextSize: 50_000, compactionTriggerRatio: 0.85 }
    },
    patch: { loop_control: { maxStepsPerTurn: 9, maxAttemptsPerStep: 2, reservedContextSize: 5 } },
    stored: { loop_control: { max_steps_per_turn: 1, reserved_context_size: 5 } }
  },
  {
    variables: { BACKGROUND_MAX_RUNNING_TASKS: '3', BACKGROUND_KEEP_ALIVE_ON_EXIT: 'yes' },
    shown: {
      background: {
        maxRunningTasks: 3,
        keepAliveOnExit: true,
        bashAutoBackgroundOnTimeout: true,
        bashTaskTimeoutS: 600,
        killGracePeriodMs: 5000
      }
    },
    patch: { background: { maxRunningTasks: 3, keepAliveOnExit: true, killGracePeriodMs: 1 } },
    stored: { background: { kill_grace_period_ms: 1 } }
  },
  {
    variables: { SUBAGENT_TIMEOUT_MS: '7' },
    shown: { subagent: { timeoutMs: 7 } },
    patch: { subagent: { timeoutMs: 7, my_field: 1 } },
    stored: { subagent: { my_field: 1 } }
  },
  {
    variables: { WEB_SEARCH_BASE_URL: 'https://env.example', WEB_SEARCH_API_KEY: 'ENV-1', WEB_FETCH_API_KEY: 'ENV-2' },
    shown: { services: { svcSearch: { baseUrl: 'https://env.example' }, svcFetch: { baseUrl: 'https://fetch.example' } } },
    patch: { services: { svcSearch: { baseUrl: 'https://env.example' }, other: { baseUrl: 'https://other.example' } } },
    stored: {
      services: {
        svc_search: { base_url: 'https://file.example', api_key: 'FILE-1' },
        svc_fetch: { base_url: 'https://fetch.example' },
        other: { base_url: 'https://other.example' }
      }
    }
  },
  {
    variables: { EXPERIMENTAL_TOOL_SELECT: '1', EXPERIMENTAL_MINE: 'off' },
    shown: { experimental: { 'tool-select': true, mine: false, stored: true } },
    patch: { experimental: { 'tool-select': true, mine: false, fresh: true } },
    stored: { experimental: { stored: true, mine: true, fresh: true } }
  },
  {
    variables: { MODEL_THINKING_EFFORT: 'high', MODEL_THINKING_KEEP: 'off' },
    shown: { thinking: { enabled: true, effort: 'high', keep: 'off' } },
    patch: { thinking: { enabled: false, effort: 'high', keep: 'off' } },
    stored: { thinking: { enabled: false, effort: 'low' } }
  },
  {
    variables: { OFFLINE: '1' },
    shown: { offline: true },
    patch: { offline: true, plan_mode: true },
    stored: { plan_mode: true }
  }
]

const file = `telemetry = true
[loop_control]
max_steps_per_turn = 1
[services.svc_search]
base_url = "https://file.example"
api_key = "FILE-1"
[services.svc_fetch]
base_url = "https://fetch.example"
[experimental]
stored = true
mine = true
[thinking]
effort = "low"
`

const prefixed = (variables: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(variables).map(([name, value]) => [`SVC_CODE_${name}`, value]))

for (const { variables, shown, patch, stored } of cases) {
  test(`${Object.keys(variables).join(', ')}: over the file, and not written when a patch repeats it`, async t => {
    withEnvironment(t, prefixed(variables))
    const scene = await configScene(t, file)

    const answer = await scene.get()
    for (const [name, value] of Object.entries(shown)) assert.deepEqual(answer[name], value, name)
    assert.doesNotMatch(JSON.stringify(answer), /ENV-|FILE-/)
    await scene.patch(patch)

    const table = await scene.table()
    for (const name of Object.keys({ ...patch, ...stored })) assert.deepEqual(table[name], stored[name], name)
  })
}

test('a model of the environment is the default, is shown without its key and is never written, not even when the answer is sent back', async t => {
  withEnvironment(
    t,
    prefixed({
      MODEL_NAME: 'large-1',
      MODEL_API_KEY: 'ENV-KEY',
      MODEL_BASE_URL: 'https://models.example/v1',
      MODEL_PROVIDER_TYPE: 'compat_chat',
      MODEL_MAX_CONTEXT_SIZE: '1000',
      MODEL_CAPABILITIES: 'tool_use, image_in',
      MODEL_DISPLAY_NAME: 'Large',
      MODEL_MAX_OUTPUT_SIZE: '10',
      MODEL_REASONING_KEY: 'why',
      MODEL_ADAPTIVE_THINKING: 'true'
    })
  )
  const { get, patch, read, server } = await configScene(t, 'default_model = "mine"\n')

  const answer = await get()
  const { items } = (await server.rest.json('GET', '/api/v1/models')).data as { items: { model: string }[] }
  await patch({ ...answer, providers: { ...answer.providers, q: { type: 'svc' } } })

  assert.equal(answer.default_model, 'environment/large-1')
  assert.deepEqual(answer.providers, {
    environment: { type: 'compat_chat', base_url: 'https://models.example/v1', has_api_key: true }
  })
  assert.deepEqual(answer.models, {
    'environment/large-1': {
      provider: 'environment',
      model: 'large-1',
      maxContextSize: 1000,
      capabilities: ['tool_use', 'image_in'],
      maxOutputSize: 10,
      displayName: 'Large',
      reasoningKey: 'why',
      adaptiveThinking: true
    }
  })
  assert.deepEqual(
    items.map(item => item.model),
    ['environment/large-1']
  )
  assert.match(await read(), /^default_model = "mine"\n/)
  assert.doesNotMatch(await read(), /large-1|environment|ENV-KEY|models\.example/)
})

const odd: Readonly<Record<string, string>> = {
  LOOP_MAX_STEPS_PER_TURN: 'many',
  LOOP_MAX_ATTEMPTS_PER_STEP: '4',
  BACKGROUND_MAX_RUNNING_TASKS: '0',
  BACKGROUND_KEEP_ALIVE_ON_EXIT: 'maybe',
  SUBAGENT_TIMEOUT_MS: '1.5',
  WEB_SEARCH_BASE_URL: 'ODD-1',
  WEB_SEARCH_API_KEY: 'ODD-2',
  EXPERIMENTAL_ONE: 'ODD-3',
  EXPERIMENTAL_TWO: 'on',
  DISABLE_TELEMETRY: 'ODD-4',
  MODEL_NAME: 'large-1',
  MODEL_API_KEY: 'ODD-5',
  MODEL_MAX_CONTEXT_SIZE: 'ODD-6',
  MODEL_ADAPTIVE_THINKING: 'ODD-7',
  MODEL_TEMPERATURE: '0.7 ODD-8'
}

test('a variable that cannot be read is named in the log without its value; what is beside it counts', async t => {
  withEnvironment(t, prefixed(odd))
  const lines: string[] = []
  const { get } = await configScene(t, file, { log: { level: 'warn', to: { write: line => lines.push(line) } } })

  const answer = await get()

  const { maxStepsPerTurn, maxAttemptsPerStep } = answer.loop_control
  assert.deepEqual([maxStepsPerTurn, maxAttemptsPerStep], [1, 4])
  const { maxRunningTasks, keepAliveOnExit } = answer.background
  assert.deepEqual([maxRunningTasks, keepAliveOnExit], [undefined, false])
  assert.deepEqual(answer.subagent, { timeoutMs: 7_200_000 })
  assert.deepEqual(answer.services.svcSearch, { baseUrl: 'https://file.example' })
  assert.deepEqual(answer.experimental, { stored: true, mine: true, two: true })
  assert.equal(answer.telemetry, false)
  assert.equal(answer.models['environment/large-1'].maxContextSize, 262_144)
  const fine = ['LOOP_MAX_ATTEMPTS_PER_STEP', 'WEB_SEARCH_API_KEY', 'EXPERIMENTAL_TWO', 'MODEL_NAME', 'MODEL_API_KEY']
  const log = lines.join('')
  for (const name of Object.keys(odd)) assert.equal(log.includes(`SVC_CODE_${name} `), !fine.includes(name), name)
  assert.doesNotMatch(log, /ODD-|many|maybe/)
})

test('a model of the environment without a key is named in the log and not used', async t => {
  withEnvironment(t, prefixed({ MODEL_NAME: 'large-1' }))
  const lines: string[] = []
  const { get } = await configScene(t, '', { log: { level: 'warn', to: { write: line => lines.push(line) } } })

  assert.deepEqual((await get()).models, {})
  assert.match(lines.join(''), /SVC_CODE_MODEL_NAME .*SVC_CODE_MODEL_API_KEY/)
})

test('the offline switch of the command line shows, cannot be patched away and is not written', async t => {
  const home = await freshDir()
  const server = await serve(t, home, '--port', '0', '--offline')
  const { get, patch } = client(t, server)

  assert.equal((await get()).offline, true)
  const answer = await patch({ offline: false })
  await patch({ ...answer, plan_mode: true })

  const after = await get()
  assert.deepEqual([after.offline, after.raw.offline, after.plan_mode], [true, false, true])
})

function client(t: TestContextLike, { url, token }: { readonly url: string; readonly token: string }) {
  const rest = new RestClient(url, token)
  t.after(() => rest.close())
  return settingsOf(rest)
}
