/** What `GET /api/v1/config` answers can be posted back: the file stays as it is, byte for byte (contract 1, Configuration). */
import assert from 'node:assert/strict'
import { readFile, stat } from 'node:fs/promises'
import { test } from 'node:test'
import { configScene } from '../helpers/config-scene.ts'
import { withEnvironment } from '../helpers/environment.ts'

const files: Readonly<Record<string, string>> = {
  'an empty file': '',
  'a file of comments only': '# mine\n\n# no settings yet',
  'a file with comments': `# top

default_model = "p/m"   # best
extra_skill_dirs = [ # dirs
  "/a", # first
]
thinking = { enabled = true } # inline
subagent.timeout_ms = 1_000 # dotted

[providers.p] # mine
type = 'svc'
my_own_field = { deepKey = [1, 2] }

[models."p/m"]
provider = "p"
model = "m"
max_context_size = 100_000 # large

[[hooks]] # one
event = "Stop"
command = "true"

[unmodelled]
x = 0xFF # kept
# tail`,
  'a file with secrets': `extra_skill_dirs = ["https://me:LEAK@skills.example/a.git", "plain"]
api_key = "LEAK"
[providers.token]
type = "compat_chat"
base_url = "https://user:LEAK@host.example/v1?api_key=LEAK"
api_key = "LEAK"
env = { ANY = "LEAK" }
custom_headers = { "X-Auth" = "LEAK" }
source = { kind = "apiJson", url = "https://h.example/?token=LEAK", api_key = "LEAK" }
[providers.open]
type = "compat_chat"
base_url = "http://127.0.0.1:8080/v1"
auth = "none"
[models."token/m"]
provider = "token"
model = "m"
max_context_size = 1
api_key = "LEAK"
overrides = { api_key = "LEAK" }
[services.svc_search]
base_url = "https://s.example/?key=LEAK"
api_key = "LEAK"
custom_headers = { Authorization = "LEAK" }
[[hooks]]
event = "Stop"
command = "DEPLOY_TOKEN=LEAK ./deploy"
[secondary_model]
api_key = "LEAK"
[background]
args = ["--token", "LEAK"]
`,
  'a file with values that JSON does not have': `[loop_control]
my_time = 07:32:00
my_day = 1979-05-27
my_most = inf
my_number = 9007199254740993
`,
  'a file with a domain under two names': '[background]\nmax_running_tasks = 1\n[task]\nmax_running_tasks = 2 # counts\n',
  'a file with what fits no schema': `plan_mode = "yes"
extra_skill_dirs = ["/a", 5]
[loop_control]
max_steps_per_turn = "many"
maxAttemptsPerStep = 3
[providers.broken]
type = 5
[[hooks]]
event = "Never"
command = "x"
`,
  'a file with line breaks of another kind and a byte order mark':
    '\ufeff# a\r\ntelemetry = false\r\n\r\n[loop_control]\r\nmax_steps_per_turn = 3\r\n'
}

for (const [what, toml] of Object.entries(files)) {
  test(`${what} is the same file after its answer was posted back`, async t => {
    const { get, patch, read } = await configScene(t, toml)
    const whole = await get()
    assert.doesNotMatch(JSON.stringify(whole), /LEAK/)

    const after = await patch(whole)

    assert.equal(await read(), toml)
    assert.deepEqual(after, whole)
  })
}

test('without a file the answer posted back makes none', async t => {
  const { get, patch, path } = await configScene(t)

  await patch(await get())

  await assert.rejects(stat(path), { code: 'ENOENT' })
})

test('the answer posted back with one change writes that change alone', async t => {
  const { get, patch, read } = await configScene(t, files['a file with comments'])
  const whole = await get()

  await patch({ ...whole, telemetry: true, loop_control: { ...whole.loop_control, maxAttemptsPerStep: 3 } })

  const before = files['a file with comments']!.split('\n')
  const added = (await read()).split('\n').filter(line => !before.includes(line))
  assert.deepEqual(added, ['telemetry = true', '[loop_control]', 'max_attempts_per_step = 3'])
})

test('the answer posted back writes nothing of the environment', async t => {
  withEnvironment(t, {
    SVC_CODE_MODEL_NAME: 'large-1',
    SVC_CODE_MODEL_API_KEY: 'LEAK',
    SVC_CODE_WEB_SEARCH_BASE_URL: 'https://env.example',
    SVC_CODE_LOOP_MAX_STEPS_PER_TURN: '9',
    SVC_CODE_DISABLE_TELEMETRY: '1'
  })
  const toml = '# mine\ntelemetry = true\n[services.svc_search]\nbase_url = "https://file.example"\napi_key = "k"\n'
  const { get, patch, read } = await configScene(t, toml)

  await patch(await get())

  assert.equal(await read(), toml)
})

test('what another server saved meanwhile is overwritten by a patch that names it, also with the value that counted before', async t => {
  const one = await configScene(t, 'subagent.timeout_ms = 1\n')
  const two = await configScene(t, undefined, { home: one.home })
  assert.equal((await two.get()).subagent.timeoutMs, 1)

  await one.patch({ subagent: { timeoutMs: 2 } })
  await two.patch({ subagent: { timeoutMs: 1 } })

  assert.equal(await readFile(one.path, 'utf8'), 'subagent.timeout_ms = 1\n')
})
