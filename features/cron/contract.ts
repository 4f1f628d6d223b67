/** The event of a scheduled prompt, parameters of the tools, and the settings (contract 3, WebSocket events). */
import { defineEvent, defineStore, type Static, Type } from '../../kernel/index.ts'
import { type ConfigSection, Environment } from '../config/index.ts'

export const CronOrigin = Type.Object({
  kind: Type.Literal('cron_job'),
  jobId: Type.String(),
  cron: Type.String(),
  recurring: Type.Boolean(),
  coalescedCount: Type.Integer({ minimum: 1, description: 'times of the schedule that this one stands for; at most 1000 are counted' }),
  stale: Type.Boolean({ description: 'the job is older than 7 days: it fired for the last time' })
})
export type CronOrigin = Static<typeof CronOrigin>

export const cronFired = defineEvent({
  type: 'cron.fired',
  scope: 'session',
  durable: true,
  payload: Type.Object({ origin: CronOrigin, prompt: Type.String() }),
  summary: 'A scheduled prompt is due; the turn that it starts or joins follows'
})

/** Sessions that have jobs: so that those that are not loaded are in time. What holds stands in their journals. */
export const dueStore = defineStore({
  name: 'due',
  kind: 'document',
  value: Type.Object({ due: Type.Integer({ description: 'next time of one of its jobs, ms' }) })
})

const closed = { additionalProperties: false }
export const createParameters = Type.Object(
  {
    cron: Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'Minute, hour, day of month, month, day of week, in the local time of the server: "30 9 * * 1-5"'
    }),
    prompt: Type.String({ minLength: 1, maxLength: 8192, description: 'What you are told then' }),
    recurring: Type.Optional(Type.Boolean({ description: 'Again and again (default), or once, at the next of these times' }))
  },
  closed
)
export const listParameters = Type.Object({}, closed)
export const deleteParameters = Type.Object(
  { id: Type.String({ minLength: 1, description: 'As CronCreate and CronList tell it' }) },
  closed
)

const flag = Type.Boolean()
const Cron = Type.Object({
  disabled: Type.Optional(flag),
  no_jitter: Type.Optional(flag),
  no_stale: Type.Optional(flag),
  poll_interval_ms: Type.Optional(Type.Integer({ minimum: 1, description: 'How often it is looked for jobs that are due' }))
})
/** Prompts at set times. */
export const cronSection: ConfigSection<typeof Cron> = {
  name: 'cron',
  schema: Cron,
  default: { disabled: false, no_jitter: false, no_stale: false, poll_interval_ms: 1000 },
  overlay(env, report) {
    const variables = new Environment(env, report)
    const given = {
      disabled: variables.flag('DISABLE_CRON'),
      no_jitter: variables.flag('CRON_NO_JITTER'),
      no_stale: variables.flag('CRON_NO_STALE'),
      poll_interval_ms: variables.integer('CRON_POLL_INTERVAL_MS', 1)
    }
    const kept = Object.entries(given).filter(([, value]) => value !== undefined)
    return kept.length > 0 ? Object.fromEntries(kept) : undefined
  }
}
