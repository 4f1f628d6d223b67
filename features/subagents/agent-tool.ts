/** The tool Agent: hands a piece of work to an agent of its own, and gives back what it answers. */
import { type Static, Type } from '../../kernel/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { newTask, resumeHint, type Task, TaskRefused, type Tasks } from '../tasks/index.ts'
import { type Tool, type ToolEnv, ToolRefusal, type ToolResult } from '../tools/index.ts'
import { limited, named, resumed } from './chosen.ts'
import { chosenModel, modelFor, type Pool } from './pool.ts'
import { detached } from './records.ts'
import { type Child, type ChildEnd, type ChildModel, SubagentRefused, type Subagents } from './service.ts'

export interface AgentToolPorts {
  readonly subagents: Subagents
  readonly tasks: () => Tasks | undefined
  readonly pool: () => Pool | undefined
  /** Model and effort of an agent. */
  readonly modelOf: (agent: AgentHost) => Promise<ChildModel>
  /** Puts records into an agent's journal. */
  readonly record: (agent: AgentHost, record: ReturnType<typeof detached.of>) => Promise<void>
  /** Of a subagent, ms; 0: none. */
  readonly timeoutMs: () => number
}

const fields = {
  prompt: Type.String({ minLength: 1, description: 'The whole task: the agent sees nothing of this conversation' }),
  description: Type.String({ minLength: 1, maxLength: 200, description: 'The task in a few words' }),
  subagent_type: Type.Optional(Type.String({ description: 'Profile of the agent; default coder' })),
  resume: Type.Optional(Type.String({ description: 'Id of an agent that you started before: it goes on with what it knows' })),
  run_in_background: Type.Optional(Type.Boolean({ description: 'Do not wait: you are told when it has ended' }))
}
const parameters = Type.Object(fields, { additionalProperties: false })
const withModel = Type.Object({ ...fields, model: chosenModel }, { additionalProperties: false })
type Arguments = Static<typeof withModel>

/** The tool as this agent may use it; undefined: it may start nobody. */
export function agentTool(caller: AgentHost, ports: AgentToolPorts): Tool | undefined {
  const profiles = ports.subagents.profilesFor(caller)
  if (profiles.length === 0) return undefined
  const pool = ports.pool()
  const models = pool?.models
    ? `\nModels:\n${['- primary: the one that you work with', ...Object.entries(pool.models).map(([alias, hint]) => `- ${alias}: ${hint}`)].join('\n')}`
    : ''
  return {
    name: 'Agent',
    description: `Hands a piece of work to an agent with a conversation of its own, and returns its final answer. Good for searches and side tasks whose details
you do not need. Several calls in one response run side by side. Give it everything it needs to know, and say what the answer must hold. It cannot ask you
anything. Its answer is not shown to the user: tell them what matters. To go on with one that has ended, give its id as \`resume\`.
Profiles:\n${profiles.map(({ name, description }) => `- ${name}: ${description}`).join('\n')}${models}`,
    parameters: models ? withModel : parameters,
    source: 'builtin',
    prepare: (args: Arguments, env) => {
      if (args.resume !== undefined && args.subagent_type !== undefined) throw new ToolRefusal('resume excludes subagent_type.')
      const who = args.resume === undefined ? named(profiles, args.subagent_type) : resumed(profiles, args.resume, env.agent)
      const background = args.run_in_background ?? false
      const refusal = background
        ? ports.tasks()
          ? ports.tasks()?.refusal(env.agent)
          : 'Nothing runs in the background on this server.'
        : undefined
      if (refusal !== undefined) throw new ToolRefusal(refusal)
      return {
        description: `Start ${who.profile.name}: ${args.description}`,
        display: { kind: 'agent_call', agent_name: who.profile.name, prompt: args.prompt, ...(background ? { background } : {}) },
        accesses: background ? [newTask] : [],
        limit_ms: 0, // the agent has a time of its own (`subagent.timeout_ms`)
        approval_argument: who.profile.name,
        async run(_progress, signal) {
          try {
            const model = modelFor(args.model, pool, await ports.modelOf(env.agent))
            const child = await ports.subagents.child({
              ...who,
              caller: env.agent,
              description: args.description,
              tool_call_id: env.tool_call_id,
              background,
              model
            })
            if (signal.aborted) child.abandon()
            signal.throwIfAborted() // nobody begins for a call that is over, in the background either
            return await runChild(child, args, env, signal, ports)
          } catch (error) {
            if (error instanceof SubagentRefused || error instanceof TaskRefused) throw new ToolRefusal(error.message)
            throw error
          }
        }
      }
    }
  }
}

/** As a task of the caller, so that it can be moved to the background; without the pack of tasks it is waited for. */
async function runChild(child: Child, args: Arguments, env: ToolEnv, signal: AbortSignal, ports: AgentToolPorts): Promise<ToolResult> {
  const tasks = ports.tasks()
  const timeout_ms = ports.timeoutMs()
  if (!tasks) {
    await child.announce()
    const time = limited(signal, timeout_ms)
    return resultOf(child, await child.work(args.prompt, time.signal).finally(time.release))
  }
  let end: ChildEnd | undefined
  let begin = (_begins: boolean) => {}
  const begun = new Promise<boolean>(resolve => {
    begin = resolve
  })
  const starting = tasks.start(env.agent, {
    kind: 'agent',
    description: args.description,
    tool_call_id: env.tool_call_id,
    background: child.spec.background,
    ...(timeout_ms > 0 ? { timeout_ms, foreground_ms: timeout_ms } : {}),
    facts: () => ({
      kind: 'agent',
      agentId: child.host.id,
      subagentType: child.spec.profile.name,
      parentToolCallId: env.tool_call_id,
      ...(child.model.alias === undefined ? {} : { model: child.model.alias }),
      ...(child.model.thinking ? { thinkingEffort: child.model.thinking } : {})
    }),
    async run({ id, signal: stop, output }) {
      // The start of the task waits for its work when it cannot be put on record.
      stop.addEventListener('abort', () => begin(false), { once: true })
      if (!(await begun)) {
        child.abandon()
        return { status: 'killed' }
      }
      await child.announce(id)
      end = await child.work(args.prompt, stop)
      output(end.text)
      if (end.status === 'completed') return { status: 'completed' }
      return { status: end.status === 'cancelled' ? 'killed' : 'failed', reason: end.error ?? 'it failed', hint: resumeHint(child.host.id) }
    }
  })
  const task: Task = await starting
    .finally(() => begin(true))
    .catch((error: unknown) => {
      child.abandon()
      throw error
    })
  if (child.spec.background) return { output: tasks.backgroundResult(task.view) }
  const how = await task.foreground(signal)
  if (how !== 'ended') {
    await ports.record(env.agent, detached.of({ subagentId: child.host.id }))
    return { output: tasks.backgroundResult(task.view, 'The agent goes on in the background.') }
  }
  const view = await task.ended
  return resultOf(child, end ?? { status: 'failed', text: '', error: view.info.stopReason ?? 'it did not start' })
}

function resultOf(child: Child, { status, text, error }: ChildEnd): ToolResult {
  const head = `agent_id: ${child.host.id}\nsubagent_type: ${child.spec.profile.name}\nstatus: ${status}`
  if (status === 'completed') return { output: `${head}\n\n${text}` }
  return { output: `${head}\nreason: ${error ?? 'unknown'}\n${resumeHint(child.host.id)}`, is_error: true }
}
