/** Wires tasks: a table per agent, routes and events, tools, what happens when sessions load, are archived and end. */
import { AppError, definePack, defineSlot, type Static } from '../../kernel/index.ts'
import { Agents, StepInjectors, TurnHooks } from '../agent/index.ts'
import { backgroundSection, Config, experimentalSection } from '../config/index.ts'
import { Histories, HistoryStates, RecordEvents, recordTypes, UndoFollowers } from '../history/index.ts'
import { type AgentHost, type Session, SessionMissing, Sessions } from '../sessions/index.ts'
import { ToolPolicies, Tools } from '../tools/index.ts'
import {
  cancelTask,
  detachTask,
  listTasks,
  readTask,
  TaskFinished,
  type TaskInfo,
  TaskMissing,
  taskNotified,
  taskStarted,
  taskTerminated
} from './contract.ts'
import { PastOutputs } from './past-outputs.ts'
import { eventsOf, startedRecord, taskState, terminatedRecord } from './records.ts'
import { statusReminder, statusVariant } from './reminder.ts'
import { Tasks } from './service.ts'
import { TaskTable } from './table.ts'
import { backgroundResult } from './texts.ts'
import { createTools } from './tools.ts'
import { statusOf, taskObject, withOutput } from './view.ts'

export default definePack({
  name: 'tasks',
  description: 'Background tasks: commands, agents and questions that run beside the conversation',
  area: 'Tools',
  needs: { sessions: Sessions, histories: Histories, agents: Agents, hooks: TurnHooks },
  optional: { config: Config },
  provides: [Tasks],
  setup(ctx, { sessions, histories, agents, hooks, config }) {
    const emitStarted = ctx.event(taskStarted)
    const emitTerminated = ctx.event(taskTerminated)
    const emitNotified = ctx.event(taskNotified)
    ctx.contribute(RecordEvents, {
      records: recordTypes('message', startedRecord, terminatedRecord),
      events: eventsOf,
      tell(agent, { type, payload, at }) {
        const target = { session_id: agent.session.id, subject: agent.id, time: at }
        // What `eventsOf` made comes back.
        if (type === taskNotified.type) emitNotified(payload as Static<typeof taskNotified.payload>, target)
        else (type === taskStarted.type ? emitStarted : emitTerminated)(payload as { info: TaskInfo }, target)
      }
    })
    ctx.contribute(HistoryStates, taskState)

    const settings = () => config()?.get(backgroundSection)
    const counts = defineSlot<{ count: number }, Session>('tasks-in-background', () => ({ count: 0 }))
    ctx.slot(counts)
    const pasts = defineSlot('tasks-past-outputs', (_session: Session) => new PastOutputs())
    ctx.slot(pasts)
    const tables = defineSlot('tasks', async (agent: AgentHost) =>
      TaskTable.open(agent, await histories.of(agent), {
        now: () => ctx.now(),
        log: ctx.log,
        limits: () => ({ max_running: settings()?.max_running_tasks, kill_grace_ms: settings()?.kill_grace_period_ms ?? 5000 }),
        engine: host => agents.of(host),
        background: agent.session.get(counts),
        past: agent.session.get(pasts)
      })
    )
    ctx.slot(tables)
    const tableOf = (agent: AgentHost) => agent.get(tables)
    /** Those of a loaded session that somebody asked for; what cannot be opened hears who asked. */
    const openTables = async (session: Session) =>
      (await Promise.all(session.agents().map(agent => agent.peek(tables)?.catch(() => undefined)))).filter(table => table !== undefined)

    const policies = ctx.collect(ToolPolicies)
    ctx.contribute(ToolPolicies, {
      name: 'wait_for',
      refuses: (_agent, { name }) =>
        name === 'WaitFor' && config()?.get(experimentalSection).wait_for === false
          ? 'The tool WaitFor is switched off (experimental.wait_for).'
          : undefined,
      basis: () => [config()?.get(experimentalSection)]
    })
    const tools = createTools({ tableOf, now: () => ctx.now() })
    for (const tool of tools) ctx.contribute(Tools, tool)
    /** Without these nobody could look after a task. */
    const needed = tools.filter(({ name }) => ['TaskList', 'TaskOutput', 'TaskStop'].includes(name))
    const refusal = (agent: AgentHost) =>
      needed.some(tool => policies.items().some(policy => policy.refuses(agent, tool) !== undefined))
        ? 'Nothing can run in the background without TaskList, TaskOutput and TaskStop, and not all of them may be used here.'
        : undefined

    ctx.provide(Tasks, {
      refusal,
      start: async (agent, spec) => (await tableOf(agent)).start(spec),
      list: async agent => (await tableOf(agent)).list(),
      find: async (agent, id) => (await tableOf(agent)).find(id),
      detach: async (agent, id) => (await (await tableOf(agent)).live(id)?.detach()) ?? false,
      stop: async (agent, id, cause, options) => (await tableOf(agent)).stop(id, cause, options),
      backgroundResult
    })
    ctx.contribute(StepInjectors, {
      variant: statusVariant,
      inject: ({ agent }, history) => agent.whenOpen(tables, table => statusReminder(table, history, ctx.now()))
    })
    ctx.tap(hooks.stepBegin, ({ agent }) => agent.whenOpen(tables, ({ telling }) => telling.tellWithStep()?.then(() => undefined)))

    ctx.contribute(UndoFollowers, { name: 'tasks', undone: async (agent, from) => (await tableOf(agent)).undone(from) })

    sessions.onLoad(async session => {
      if (!session.writable) return
      const main = session.agent('main')
      if (main) await tableOf(main)
      ctx.background(async () => {
        for (const agent of session.agents()) {
          if (!session.scope.closed && agent.id !== 'main' && !(await histories.wasClosed(agent))) await tableOf(agent)
        }
      })
    })
    sessions.onArchive(async session => {
      for (const table of await openTables(session)) await table.end()
    })
    ctx.tap(ctx.hooks.stopping, async () => {
      const open = (await Promise.all(sessions.allLoaded().map(openTables))).flat()
      await Promise.all(open.map(table => table.shutDown(settings()?.keep_alive_on_exit ?? false)))
    })

    /** A session that is not loaded has no tasks; it is not loaded for this. */
    const tablesOf = async (session_id: string): Promise<readonly TaskTable[]> => {
      const session = sessions.loaded(session_id)
      if (session) return openTables(session)
      if (!(await sessions.exists(session_id))) throw new AppError(SessionMissing)
      return []
    }
    const find = async ({ session_id, task_id }: { readonly session_id: string; readonly task_id: string }) => {
      for (const table of await tablesOf(session_id)) {
        const task = table.find(task_id)
        if (task) return { table, task }
      }
      throw new AppError(TaskMissing)
    }
    ctx.route(listTasks, async ({ params: { session_id }, query: { status } }) => {
      const all = (await tablesOf(session_id)).flatMap(table =>
        table.list().filter(({ info }) => table.agent.id === 'main' || info.detached)
      )
      all.sort((a, b) => a.info.startedAt - b.info.startedAt)
      return { items: all.map(taskObject).filter(task => status === undefined || task.status === status) }
    })
    ctx.route(readTask, async ({ params, query: { with_output, output_bytes } }) => {
      const { task } = await find(params)
      return with_output ? await withOutput(task, output_bytes) : taskObject(task)
    })
    ctx.route(cancelTask, async ({ params }) => {
      const { table } = await find(params)
      table.agent.session.assertWritable()
      if (await table.stop(params.task_id, 'user', { reason: 'The user stopped it.' })) return { cancelled: true as const }
      const { task } = await find(params)
      throw new AppError(TaskFinished, { data: { cancelled: false }, details: { current_status: statusOf(task.info) } })
    })
    ctx.route(detachTask, async ({ params }) => {
      const { table } = await find(params)
      table.agent.session.assertWritable()
      const detached = (await table.live(params.task_id)?.detach()) ?? false
      return { detached, status: statusOf((await find(params)).task.info) }
    })
  }
})
