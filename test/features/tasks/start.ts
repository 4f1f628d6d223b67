/** Tasks whose work the test holds in its hands, on a kernel with a scripted model. */
import { Histories, type History } from '../../../features/history/index.ts'
import { type AgentHost, Sessions } from '../../../features/sessions/index.ts'
import { type Task, type TaskOutcome, type TaskRun, type TaskSpec, Tasks } from '../../../features/tasks/index.ts'
import tasks from '../../../features/tasks/pack.ts'
import { ToolAuthority } from '../../../features/tools/index.ts'
import tools from '../../../features/tools/pack.ts'
import { definePack, type Pack } from '../../../kernel/index.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { type ScriptedLlm, scriptedLlm } from '../../helpers/scripted-llm.ts'
import { copyOfHome, type Started, type StartOptions, startAgent } from '../agent/start.ts'
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

/** Notices of ends in a request to the model; the last one by default. */
export const told = ({ requests }: ScriptedLlm, n = requests.length - 1): readonly string[] =>
  (requests[n]?.messages ?? [])
    .flatMap(({ role, content }) => (role === 'user' ? content : []))
    .flatMap(part => ('text' in part && part.text.includes('<notification') ? [part.text] : []))

/** Who begins turns in another server on a copy of the home, until its first prompt is answered, and which notices the model got with that. */
export async function afterRestart(t: TestContextLike, { home, session_id }: Pick<Started, 'home' | 'session_id'>) {
  const llm = scriptedLlm('ok')
  const next = await startTasks(t, llm, { home: await copyOfHome(home), session_id })
  await next.prompt('again')
  await next.settled(1)
  const begun = next.events.flatMap(({ type, payload }) =>
    type === 'turn.started' ? [(payload as { origin: { kind: string } }).origin.kind] : []
  )
  return { begun, told: told(llm) }
}

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
