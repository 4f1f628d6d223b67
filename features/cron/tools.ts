/** CronCreate, CronList and CronDelete. */
import { type Static, shortLine, type TObject } from '../../kernel/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { type Tool, type ToolEnv, ToolRefusal } from '../tools/index.ts'
import { createParameters, deleteParameters, listParameters } from './contract.ts'
import type { Job } from './records.ts'
import { type CronTable, MAX_JOBS } from './table.ts'
import { inWords, localTime, nextDue, problemOf } from './timing.ts'

export interface ToolPorts {
  readonly tableOf: (agent: AgentHost) => Promise<CronTable>
  readonly now: () => Date
}

/** Bytes of a prompt. */
const MAX_PROMPT = 8192
/** A one-shot that is further away is a mistake in most cases: its date of this year is over. */
const MAX_AHEAD_MS = 350 * 24 * 3600 * 1000

/** Calls of one response see the jobs as the ones before left them. */
const thing = 'cron'

export function createTools({ tableOf, now }: ToolPorts): readonly Tool<TObject>[] {
  const check = async ({ cron, prompt, recurring = true }: Static<typeof createParameters>, table: CronTable) => {
    if (Buffer.byteLength(prompt) > MAX_PROMPT) throw new ToolRefusal('prompt: at most 8 KiB of UTF-8.')
    const problem = await problemOf(cron, now())
    if (problem !== undefined) throw new ToolRefusal(`cron: ${problem}.`)
    const due = await nextDue({ job_id: '', cron, recurring }, now().getTime(), false)
    if (!recurring && due && due.at - now().getTime() > MAX_AHEAD_MS) {
      throw new ToolRefusal('A prompt that fires once must be due within 350 days: this time of the year is over. Give another one.')
    }
    if (table.jobs().length >= MAX_JOBS) throw tooMany()
  }
  const lines = async (job: Job, table: CronTable, prompt: boolean) => {
    const due = await table.dueAt(job)
    return [
      `id: ${job.job_id}`,
      `cron: ${job.cron}`,
      `humanSchedule: ${inWords(job.cron, job.recurring)}`,
      `recurring: ${job.recurring}`,
      ...(due === undefined ? [] : [`nextFireAt: ${localTime(due)}`]),
      ...(prompt ? [`prompt: ${shortLine(job.prompt, 200)}`] : [])
    ].join('\n')
  }

  const create: Tool<typeof createParameters> = {
    name: 'CronCreate',
    description: `Schedules a prompt for yourself: at the given times you get it as a message, and work on it when you are idle.
- Five fields in the local time of the server: minute, hour, day of month, month, day of week. "0 9 * * 1-5": Monday to Friday at 9.
- recurring false: once, at the next of these times; the job is deleted then. At most ${MAX_JOBS} jobs, and 350 days ahead.
- Recurring ones fire up to 15 minutes later than they say, one-shots at full and half hours up to 90 seconds earlier. Times that were missed,
  because you were at work or the server was not running, are one message together. After 7 days a recurring job fires a last time.
- Only for what the user asked to be done later or repeatedly. To wait for a command, use run_in_background and its notification.`,
    parameters: createParameters,
    source: 'builtin',
    async prepare(args: Static<typeof createParameters>, env: ToolEnv) {
      const table = await tableOf(env.agent)
      await check(args, table)
      const { cron, prompt, recurring = true } = args
      return {
        description: `Scheduling a prompt: ${inWords(cron, recurring)}`,
        accesses: [{ kind: 'change', thing }],
        approval_argument: cron,
        async run() {
          await check(args, table) // an approval may have taken its time
          const job = await table.create({ cron: cron.trim(), prompt, recurring })
          if (!job) throw tooMany()
          return { output: await lines(job, table, false) }
        }
      }
    }
  }

  const list: Tool<typeof listParameters> = {
    name: 'CronList',
    description: 'Lists your scheduled prompts with their ids and when they fire next.',
    parameters: listParameters,
    source: 'builtin',
    prepare: (_args: unknown, env: ToolEnv) => ({
      description: 'Listing scheduled prompts',
      accesses: [{ kind: 'look', thing }],
      async run() {
        const table = await tableOf(env.agent)
        const jobs = await Promise.all(table.jobs().map(job => lines(job, table, true)))
        return { output: jobs.length === 0 ? 'There are no scheduled prompts.' : jobs.join('\n\n') }
      }
    })
  }

  const remove: Tool<typeof deleteParameters> = {
    name: 'CronDelete',
    description: 'Deletes a scheduled prompt: it does not fire any more.',
    parameters: deleteParameters,
    source: 'builtin',
    async prepare({ id }: Static<typeof deleteParameters>, env: ToolEnv) {
      const table = await tableOf(env.agent)
      const job = table.jobs().find(each => each.job_id === id)
      if (!job) throw unknown(id)
      return {
        description: `Deleting a scheduled prompt: ${inWords(job.cron, job.recurring)}`,
        accesses: [{ kind: 'change', thing }],
        approval_argument: id,
        async run() {
          if (!(await table.delete(id))) throw unknown(id)
          return { output: `The scheduled prompt ${id} is deleted.` }
        }
      }
    }
  }
  return [create, list, remove]
}

const tooMany = () => new ToolRefusal(`There are ${MAX_JOBS} scheduled prompts, and no more may be. Delete one first.`)
const unknown = (id: string) => new ToolRefusal(`There is no scheduled prompt ${id}. CronList shows those that there are.`)
