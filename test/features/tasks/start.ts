/** Tasks whose work the test holds in its hands, on a kernel with a scripted model. */
import { Histories, type History } from '../../../features/history/index.ts'
import { type AgentHost, Sessions } from '../../../features/sessions/index.ts'
import { type Task, type TaskOutcome, type TaskRun, type TaskSpec, Tasks } from '../../../features/tasks/index.ts'
import tasks from '../../../features/tasks/pack.ts'
import { ToolAuthority } from '../../../features/tools/index.ts'
import tools from '../../../features/tools/pack.ts'
import { definePack, type Pack } from '../../../kernel/index.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import type { ScriptedLlm } from '../../helpers/scripted-llm.ts'
import { type Started, type StartOptions, startAgent } from '../agent/start.ts'
import { permissive } from '../tools/fakes.ts'

/** Work that goes on until the test ends it, or the task is stopped. */
export interface Held {
  readonly task: Task
  readonly run: TaskRun
  end(outcome?: TaskOutcome): void
}

export interface TaskScene extends Started {
  readonly tasks: Tasks
  readonly sessions: Sessions
  /** The service of the pack as it is now. */
  tasksNow(): Tasks
  main(): Promise<AgentHost>
  /** What else is done to the agent: undo, compaction. */
  history(): Promise<History>
  hold(spec?: Partial<TaskSpec>, agent?: AgentHost): Promise<Held>
}

/** Permits every call. */
export const authority: Pack = definePack({
  name: 'authority',
  provides: [ToolAuthority],
  setup: ctx => ctx.provide(ToolAuthority, permissive)
})

/** The packs tasks and tools, and one that hands out the services. */
export async function startTasks(t: TestContextLike, llm: ScriptedLlm, options: StartOptions = {}): Promise<TaskScene> {
  let services: { tasks: Tasks; sessions: Sessions; histories: Histories } | undefined
  const inside: Pack = definePack({
    name: 'task-insider',
    needs: { tasks: Tasks, sessions: Sessions, histories: Histories },
    setup(_ctx, given) {
      services = given
    }
  })
  const started = await startAgent(t, llm, { ...options, packs: [tools, authority, tasks, inside, ...(options.packs ?? [])] })
  const { tasks: service, sessions, histories } = services as NonNullable<typeof services> // the kernel has started
  const { session_id } = started
  const main = async () => (await sessions.load(session_id)).main()
  return {
    ...started,
    tasks: service,
    sessions,
    tasksNow: () => (services as NonNullable<typeof services>).tasks,
    main,
    history: async () => histories.of(await main()),
    async hold(spec = {}, agent) {
      let end: Held['end'] = () => {}
      let run: TaskRun | undefined
      const task = await service.start(agent ?? (await main()), {
        kind: 'process',
        description: 'held',
        facts: () => ({ kind: 'process', command: 'held', pid: 1 }),
        run(given) {
          run = given
          return new Promise(resolve => {
            end = (outcome = { status: 'completed', exit_code: 0 }) => resolve(outcome)
            given.signal.addEventListener('abort', () => resolve({ status: 'failed' }))
          })
        },
        ...spec
      })
      return { task, run: run as TaskRun, end: outcome => end(outcome) }
    }
  }
}
