/** When jobs are due: times of their pattern, moved a little so that not all of the world fires at once. */
import { createHash } from 'node:crypto'
import type { Cron } from 'croner'
import { yieldToLoop } from '../../kernel/index.ts'
import type { Job } from './records.ts'

const MINUTE = 60_000
/** A pattern must fire within this time. */
const HORIZON_MS = 5 * 366 * 24 * 60 * MINUTE
/** Recurring jobs fire later by so much of their period, and by so many ms, at most. */
const LATER_SHARE = 0.1
const LATER_MS = 15 * MINUTE
/** One-shots at full and half hours fire earlier by so many ms at most. */
const EARLIER_MS = 90_000
/** Times that one fire stands for at most; of more, how many they were is not counted. */
const MOST_MISSED = 1000

/** A time of the pattern, and when the job fires for it, ms. */
export interface Due {
  readonly scheduled: number
  readonly at: number
}

/** Times that have passed, and what comes then. */
export interface Passed {
  readonly count: number
  /** The last of them. */
  readonly cursor: number
}

/** As clocks of this machine show it, which patterns mean, too: ISO 8601 with the offset of that day. */
export function localTime(ms: number): string {
  const offset = -new Date(ms).getTimezoneOffset()
  const clock = new Date(Math.abs(offset) * MINUTE).toISOString().slice(11, 16)
  return `${new Date(ms + offset * MINUTE).toISOString().slice(0, 19)}${offset < 0 ? '-' : '+'}${clock}`
}

const field = /^[\d*,/-]+$/
const names = /\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat)\b/gi

/** What is wrong with a pattern, as a sentence; undefined: nothing. */
export async function problemOf(cron: string, now: Date): Promise<string | undefined> {
  const fields = cron.trim().split(/\s+/)
  if (fields.length !== 5) return `it has ${fields.length} fields, not 5 (minute, hour, day of month, month, day of week)`
  for (const [at, text] of fields.entries()) {
    if (!field.test(at < 3 ? text : text.replace(names, '1'))) return `"${text}" is none of: numbers, *, lists (,), ranges (-), steps (/)`
  }
  try {
    const next = (await patternOf(cron)).nextRun(now)?.getTime()
    if (next === undefined) return 'it never fires'
    return next - now.getTime() > HORIZON_MS ? 'it does not fire within 5 years' : undefined
  } catch (error) {
    return error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error)
  }
}

const patterns = new Map<string, Cron>()

/** Loaded with the first job. Throws what is wrong with the pattern. */
async function patternOf(cron: string): Promise<Cron> {
  let known = patterns.get(cron)
  if (!known) {
    const { Cron } = await import('croner')
    known = new Cron(cron, { mode: '5-part', paused: true })
    if (patterns.size >= 200) patterns.clear()
    patterns.set(cron, known)
  }
  return known
}

/** The same for the same id: 0 to 1. */
function share(id: string): number {
  return createHash('sha256').update(id).digest().readUInt32BE() / 2 ** 32
}

/** The next time after `from` (ms); undefined: there is none. */
export async function nextDue(job: Pick<Job, 'job_id' | 'cron' | 'recurring'>, from: number, jitter: boolean): Promise<Due | undefined> {
  const pattern = await patternOf(job.cron)
  const scheduled = pattern.nextRun(new Date(from))?.getTime()
  if (scheduled === undefined) return undefined
  if (!jitter) return { scheduled, at: scheduled }
  if (job.recurring) {
    const period = (pattern.nextRun(new Date(scheduled))?.getTime() ?? scheduled) - scheduled
    return { scheduled, at: scheduled + Math.floor(share(job.job_id) * Math.min(LATER_SHARE * period, LATER_MS)) }
  }
  const minute = new Date(scheduled).getMinutes()
  // One that is near has been asked for like this.
  const early = minute % 30 === 0 && scheduled - from > 2 * EARLIER_MS
  return { scheduled, at: scheduled - (early ? Math.floor(share(job.job_id) * EARLIER_MS) : 0) }
}

/** The times of a job that are due at `now`; undefined: none. */
export async function passedAt(job: Job, now: number, jitter: boolean): Promise<Passed | undefined> {
  let count = 0
  let { cursor } = job
  for (;;) {
    const next = await nextDue(job, cursor, jitter)
    if (!next || next.at > now) break
    count++
    cursor = next.scheduled
    if (!job.recurring) break
    if (count === MOST_MISSED) return { count, cursor: now }
    await yieldToLoop()
  }
  return count === 0 ? undefined : { count, cursor }
}

const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']
const months = 'January February March April May June July August September October November December'.split(' ')

/** The pattern in words. */
export function inWords(cron: string, recurring: boolean): string {
  const text = wordsOf(cron.trim().split(/\s+/)) ?? `by the pattern ${cron.trim()}`
  return recurring ? text : `once, the next time of: ${text}`
}

function wordsOf([minute = '', hour = '', day = '', month = '', weekday = '']: readonly string[]): string | undefined {
  const anyDay = day === '*' && month === '*' && weekday === '*'
  const minutes = listed(minute, plain)
  const many = /\D/.test(minute) ? 'minutes' : 'minute'
  if (anyDay && hour === '*') {
    if (minute === '*') return 'every minute'
    if (stepOf(minute)) return `every ${stepOf(minute)} minutes`
    return minutes && `every hour at ${many} ${minutes}`
  }
  if (anyDay && stepOf(hour)) return minutes && `every ${stepOf(hour)} hours at ${many} ${minutes}`
  const dates = datesOf(day, month, weekday)
  const times = timesOf(minute, hour)
  return dates && times && `${dates} ${times}`
}

function timesOf(minute: string, hour: string): string | undefined {
  const clock = (h: string, m: string) => `${h.padStart(2, '0')}:${m.padStart(2, '0')}`
  const [, from, to] = /^(\d+)-(\d+)$/.exec(hour) ?? []
  if (from && to && plain(minute)) return `hourly from ${clock(from, minute)} to ${clock(to, minute)}`
  if (![minute, hour].every(each => /^\d+(?:,\d+)*$/.test(each))) return undefined
  return `at ${hour
    .split(',')
    .flatMap(h => minute.split(',').map(m => clock(h, m)))
    .join(', ')}`
}

function datesOf(day: string, month: string, weekday: string): string | undefined {
  const inMonths = listed(month, text => months[Number(text) - 1] ?? months.find(name => isShort(text, name)))
  const onDays = listed(weekday, text => days[Number(text)] ?? days.find(name => isShort(text, name)))
  if (day === '*') {
    const each = weekday === '*' ? 'every day' : onDays && (/^\w+-\w+$/.test(weekday) ? onDays : `every ${onDays}`)
    return month === '*' ? each : each && inMonths && `${each} in ${inMonths}`
  }
  const numbers = weekday === '*' ? listed(day, plain) : undefined
  if (numbers === undefined) return undefined
  if (month !== '*' && plain(day)) return inMonths && `on ${numbers} ${inMonths}`
  const of = month === '*' ? 'every month' : inMonths
  return of && `on ${plain(day) ? 'day' : 'days'} ${numbers} of ${of}`
}

const stepOf = (text: string) => /^\*\/(\d+)$/.exec(text)?.[1]
const plain = (text: string) => (/^\d+$/.test(text) ? String(Number(text)) : undefined)
const isShort = (text: string, name: string) => name.slice(0, 3).toLowerCase() === text.toLowerCase()

/** A list of numbers, names and ranges, each as `named` says it; undefined for what it has no word for. */
function listed(field: string, named: (text: string) => string | undefined): string | undefined {
  const items = field.split(',').map(item => item.split('-').map(named))
  return items.every(ends => ends.length <= 2 && ends.every(end => end !== undefined))
    ? items.map(ends => ends.join(' to ')).join(', ')
    : undefined
}
