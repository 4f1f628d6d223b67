/** Layouts of the configuration file that survive patches. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configScene } from '../helpers/config-scene.ts'

const layout = `# top comment

# about the model
default_model = "a" # c1
big = 1_000 # c2
hex = 0xFF # c3
when = 1979-05-27T07:32:00Z # c4
day = 1979-05-27 # c5
time = 07:32:00 # c6
least = -inf # c7
none = nan # c8
float = 1e3 # c9
long = """
several # no comment
lines""" # c10
literal = '''
raw \\n''' # c11
"quoted key" = 1 # c12
list = [ # c13
  1, # c14
  2,
] # c15
thinking = { enabled = true, keep = "all" } # c16
subagent.timeout_ms = 5 # c17

[loop_control] # c18
# inner
max_steps_per_turn = 1_000 # c19
my_number = 0o17 # c20

# before providers
[providers."my prov"] # c21
type = "svc" # c22
api_key = "k" # c23
env = { "A B" = "x" } # c24

[providers.other.env] # c25
FOO = "1" # c26

[models."a/b.c"] # c27
provider = "my prov"
model = "m"
max_context_size = 100_000 # c28
overrides = { display_name = "D" } # c29

[[hooks]] # c30
event = "Stop" # c31
command = "x" # c32

[services] # c33
svc_search.base_url = "https://h.example" # c34

[experimental] # c35
"secondary-model" = true # c36
# tail comment
`

const patches: Readonly<Record<string, { body: object; gone?: string; come: readonly string[] }>> = {
  'an inline table': {
    body: { thinking: { enabled: false, effort: 'high' } },
    gone: 'thinking = { enabled = true, keep = "all" } # c16',
    come: ['thinking = { enabled = false, keep = "all", effort = "high" } # c16']
  },
  'a dotted key': { body: { subagent: { timeoutMs: 6 } }, gone: 'subagent.timeout_ms = 5 # c17', come: ['subagent.timeout_ms = 6 # c17'] },
  'a number': {
    body: { loop_control: { maxStepsPerTurn: 7, reservedContextSize: 8 } },
    gone: 'max_steps_per_turn = 1_000 # c19',
    come: ['max_steps_per_turn = 7 # c19', 'reserved_context_size = 8']
  },
  'a quoted table': {
    body: { providers: { 'my prov': { api_key: 'new', base_url: 'https://b.example' } } },
    gone: 'api_key = "k" # c23',
    come: ['api_key = "new" # c23', 'base_url = "https://b.example"']
  },
  'a table in a table': { body: { providers: { other: { env: { BAR: '2' } } } }, come: ['BAR = "2"'] },
  'an inline table of a table': {
    body: { models: { 'a/b.c': { overrides: { maxOutputSize: 9 } } } },
    gone: 'overrides = { display_name = "D" } # c29',
    come: ['overrides = { display_name = "D", max_output_size = 9 } # c29']
  },
  'an array of tables': {
    body: {
      hooks: [
        { event: 'Stop', command: 'y' },
        { event: 'Stop', command: 'z', timeout: 3 }
      ]
    },
    gone: 'command = "x" # c32',
    come: ['command = "y" # c32', '[[hooks]]', 'event = "Stop"', 'command = "z"', 'timeout = 3']
  },
  'a dotted table': { body: { services: { svcSearch: { apiKey: 'k' } } }, come: ['svc_search.api_key = "k"'] },
  flags: {
    body: { experimental: { 'secondary-model': false, other: true } },
    gone: '"secondary-model" = true # c36',
    come: ['"secondary-model" = false # c36', 'other = true']
  },
  scalars: {
    body: { default_model: 'b', telemetry: true, default_permission_mode: 'auto', extra_skill_dirs: ['/a'] },
    gone: 'default_model = "a" # c1',
    come: ['default_model = "b" # c1', 'telemetry = true', 'default_permission_mode = "auto"', 'extra_skill_dirs = ["/a"]']
  },
  'new tables': {
    body: {
      background: { maxRunningTasks: 3 },
      permission: { rules: [{ decision: 'deny', pattern: 'Bash(rm *)' }] },
      secondary_model: { default_model: 'a/b.c', models: { 'a/b.c': 'quick' } },
      model_catalog: { refreshOnStart: false }
    },
    come: [
      '[background]',
      'max_running_tasks = 3',
      '[permission]',
      'rules = [',
      '  { decision = "deny", pattern = "Bash(rm *)" }',
      ']',
      '[secondary_model]',
      'default_model = "a/b.c"',
      '[secondary_model.models]',
      '"a/b.c" = "quick"',
      '[model_catalog]',
      'refresh_on_start = false'
    ]
  }
}
for (const [what, { body, gone, come }] of Object.entries(patches)) {
  test(`a patch of ${what} touches its own lines only`, async t => {
    const { patch, read } = await configScene(t, layout)

    await patch(body)

    const before = lines(layout)
    const after = lines(await read())
    assert.deepEqual(
      before.filter(line => !after.includes(line)),
      gone === undefined ? [] : [gone]
    )
    assert.deepEqual(surplus(after, before), [...come].sort())
    assert.deepEqual(order(after, before), order(before, after))
  })
}

const lines = (text: string) => text.split('\n').filter(line => line !== '')

/** Lines that the first has more often, sorted. */
function surplus(of: readonly string[], over: readonly string[]): string[] {
  const left = [...over]
  return of
    .filter(line => {
      const at = left.indexOf(line)
      if (at >= 0) left.splice(at, 1)
      return at < 0
    })
    .sort()
}

/** Lines that both have once, in the order of the first. */
function order(first: readonly string[], second: readonly string[]): string[] {
  const once = (all: readonly string[], line: string) => all.filter(other => other === line).length === 1
  return first.filter(line => once(first, line) && once(second, line))
}
