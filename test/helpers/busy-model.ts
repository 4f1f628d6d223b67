/**
 * A model that does everything an agent can do, one script per prompt (`do:<script>:<name>`). Its place in a script follows from the
 * messages alone.
 */
import type { Said } from './crash-scene.ts'
import type { Step } from './fake-upstream.ts'

type Tool = { readonly name: string; readonly args: Record<string, unknown>; readonly id: string }

/** Every effect has a name of its own, which is the id of the call that has it. */
const line = (id: string, more: object = {}): Tool => ({ name: 'Bash', args: { command: `echo ${id} >> effects`, ...more }, id })
const slowly = (id: string): Tool =>
  line(id, { command: `sleep 0.03; echo ${id} >> effects`, run_in_background: true, description: `effect ${id}` })
const question = (name: string) => ({
  questions: [{ question: `Which one for ${name}?`, options: [{ label: 'Left' }, { label: 'Right' }] }]
})

const waited = (id: string) => line(id, { command: `sleep 0.15; echo ${id} >> effects`, description: `effect ${id}` })

/** What the provider says of the size of the context. */
const full = { input: 900_000, output: 10 }
const tooLong = { status: 400, body: { error: { message: 'the maximum context length is exceeded', type: 'invalid_request_error' } } }

type Part = Tool | typeof full
type Script = (name: string, messages: readonly Said[]) => readonly (readonly Part[] | string | typeof tooLong)[]

/** Calls of one response, or a text, which ends the turn. */
export const scripts = {
  talk: () => [],
  shell: name => [[line(`${name}-0`), line(`${name}-1`)], [line(`${name}-2`)]],
  file: name => [
    [call('Write', `${name}-0`, { path: `${name}.txt`, content: `${name}\n` })],
    [call('Read', `${name}-1`, { path: `${name}.txt` })],
    [call('Edit', `${name}-2`, { path: `${name}.txt`, old_string: name, new_string: 'changed' })]
  ],
  todo: name => [
    [call('TodoList', `${name}-0`, { todos: [{ title: name, status: 'pending' }] }), line(`${name}-1`)],
    [call('TodoList', `${name}-2`, { todos: [{ title: name, status: 'done' }] })]
  ],
  back: name => [[slowly(`${name}-0`)], [line(`${name}-1`)]],
  wait: name => [[slowly(`${name}-0`)], [call('WaitFor', `${name}-1`, { timeout: 20 })], [line(`${name}-2`)]],
  stop: (name, messages) => [
    [line(`${name}-0`, { command: 'sleep 30', run_in_background: true, description: 'long' })],
    [call('TaskStop', `${name}-1`, { task_id: found(messages, /task_id: (bash-\w+)/) })]
  ],
  left: name => [[line(`${name}-0`, { command: 'sleep 30', run_in_background: true, description: 'long' })]],
  ask: name => [[call('AskUserQuestion', `${name}-0`, question(name))], [line(`${name}-1`)]],
  'ask-back': name => [[call('AskUserQuestion', `${name}-0`, { ...question(name), background: true })], [line(`${name}-1`)]],
  plan: (name, messages) => [
    [call('EnterPlanMode', `${name}-0`, {})],
    [call('Write', `${name}-1`, { path: found(messages, /Plan file: (\S+\.md)/), content: `the plan ${name}\n` })],
    [call('ExitPlanMode', `${name}-2`, {})],
    [line(`${name}-3`)]
  ],
  goal: name => [
    [call('CreateGoal', `${name}-0`, { objective: `reach ${name}`, replace: true })],
    [line(`${name}-1`)],
    'The first turn is over.',
    [line(`${name}-2`)],
    'The second turn is over.',
    [call('UpdateGoal', `${name}-3`, { status: 'complete', reason: 'seen' })]
  ],
  agent: name => [
    [call('Agent', `${name}-0`, { prompt: `do:child:${name}c`, description: 'a part' }), line(`${name}-1`)],
    [line(`${name}-2`)]
  ],
  'agent-back': name => [
    [call('Agent', `${name}-0`, { prompt: `do:child:${name}c`, description: 'a part', run_in_background: true })],
    [line(`${name}-1`)]
  ],
  swarm: name => [
    [call('AgentSwarm', `${name}-0`, { description: 'parts', prompt_template: `do:child:${name}{{item}}`, items: ['a', 'b'] })],
    [line(`${name}-1`)]
  ],
  cron: name => [[call('CronCreate', `${name}-0`, { cron: '* * * * *', prompt: `tick ${name}`, recurring: false })]],
  fetch: name => [[call('FetchURL', `${name}-0`, { url: `https://pages.example.com/${name}` })], [line(`${name}-1`)]],
  search: name => [[call('WebSearch', `${name}-0`, { query: name })], [line(`${name}-1`)]],
  /** Its prompt brings pictures. */
  media: name => [[line(`${name}-0`)]],
  /** A hook of the user looks at the prompt, and one at the end of the turn. */
  hooked: name => [[line(`${name}-0`)]],
  /** A hook of the user blocks the prompt. */
  blocked: () => [],
  /** The client moves the call to the background, or cancels it. */
  detach: name => [[waited(`${name}-0`)], [line(`${name}-1`)]],
  cancel: name => [[waited(`${name}-0`)], [line(`${name}-1`)]],
  /** The provider counts more tokens than the window bears: compaction comes before the next step. */
  grow: name => [[line(`${name}-0`), full], [line(`${name}-1`)]],
  /** The provider refuses what is too long: compaction, then the step again. */
  overflow: name => [[line(`${name}-0`)], tooLong],
  child: name => [[line(`${name}-0`)], 'The part is done. '.repeat(20)]
} as const satisfies Record<string, Script>

export type ScriptName = keyof typeof scripts

/** What the model says next. A context that was made smaller begins no script anew. */
export function busyModel(messages: readonly Said[]): readonly Step[] {
  const at = messages.findLastIndex(({ role, content }) => role === 'user' && wishOf(content) !== undefined)
  const wish = wishOf(messages[at]?.content)
  const after = messages.slice(at + 1)
  if (JSON.stringify(messages.at(-1)?.content).includes('replaced by a note that you write now'))
    return [{ text: 'A note of what was done.' }]
  const over: readonly Step[] = [{ text: 'That is all there is to say here.', chunks: 4, every_ms: 1 }]
  if (!wish || after.some(({ content }) => JSON.stringify(content).includes('was replaced by the note below'))) return over
  const step = (scripts[wish.script] as Script)(wish.name, after)[after.filter(({ role }) => role === 'assistant').length]
  if (step === undefined) return over
  if (typeof step === 'string') return [{ text: step, chunks: 2 }]
  if ('status' in step) return [step]
  const tools = step.flatMap(part => ('name' in part ? part : []))
  return [{ text: 'Looking. ' }, { tools }, ...step.flatMap(part => ('input' in part ? { usage: part } : []))]
}

const call = (name: string, id: string, args: Record<string, unknown>): Tool => ({ name, id, args })

function wishOf(content: unknown): { readonly script: ScriptName; readonly name: string } | undefined {
  const [, script, name] = [...(JSON.stringify(content) ?? '').matchAll(/do:([a-z-]+):(\w+)/g)].at(-1) ?? []
  return script !== undefined && name !== undefined && script in scripts ? { script: script as ScriptName, name } : undefined
}

/** The newest that a tool said. */
function found(messages: readonly Said[], what: RegExp): string {
  const said = messages.flatMap(({ role, content }) => (role === 'tool' ? (textOf(content).match(what)?.[1] ?? []) : []))
  return said.at(-1) ?? 'none'
}

const textOf = (content: unknown): string =>
  typeof content === 'string' ? content : Array.isArray(content) ? content.map(part => (part as { text?: string }).text ?? '').join('') : ''
