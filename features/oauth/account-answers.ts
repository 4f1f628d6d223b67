/** The account service's answers, quota and profile, in the words of the contract (contract 1, Usage and account information). */
import { recordOf } from '../llm/index.ts'
import { isTable } from '../providers/index.ts'
import type { Usage, UsageRow, UserInfo } from './contract.ts'
import { AccountProblem } from './problem.ts'

type Window = NonNullable<UsageRow['window']>

const units = new Map<unknown, Window['unit']>([
  ['TIME_UNIT_MINUTE', 'minute'],
  ['TIME_UNIT_HOUR', 'hour'],
  ['TIME_UNIT_DAY', 'day'],
  ['TIME_UNIT_WEEK', 'week']
])
/** The wallet counts in millionths of a cent. */
const PER_CENT = 1_000_000

/** Throws AccountProblem when the answer is no object. */
export function readUsageAnswer(answer: unknown): Usage {
  if (!isTable(answer)) throw new AccountProblem('the account service answered with no usage', { status: 200 })
  const limits = Array.isArray(answer.limits) ? answer.limits.filter(isTable) : []
  return {
    kind: 'ok',
    summary: rowOf(answer.usage, windowOf(recordOf(answer.usage).window) ?? { duration: 1, unit: 'week' }) ?? null,
    limits: limits.flatMap(item => rowOf(item.detail, windowOf(item.window), item.name) ?? []),
    extra_usage: walletOf(answer.boosterWallet)
  }
}

/** Undefined when the row says neither what was used nor what is allowed. */
function rowOf(row: unknown, window: Window | undefined, name?: unknown): UsageRow | undefined {
  if (!isTable(row)) return undefined
  const used = integer(row.used)
  const limit = integer(row.limit)
  if (used === undefined && limit === undefined) return undefined
  const title = [name, row.name].find(text => typeof text === 'string' && text !== '') as string | undefined
  const reset_at = typeof row.resetTime === 'string' && row.resetTime !== '' ? row.resetTime : undefined
  return { name: title, window, used: used ?? 0, limit: limit ?? 0, reset_at }
}

/** Whole hours in minutes become hours. */
function windowOf(window: unknown): Window | undefined {
  if (!isTable(window)) return undefined
  const duration = integer(window.duration)
  const unit = units.get(window.timeUnit)
  if (duration === undefined || unit === undefined) return undefined
  return unit === 'minute' && duration >= 60 && duration % 60 === 0 ? { duration: duration / 60, unit: 'hour' } : { duration, unit }
}

function walletOf(wallet: unknown): Usage['extra_usage'] {
  const { balance, monthlyChargeLimitEnabled, monthlyChargeLimit, monthlyUsed } = recordOf(wallet)
  const { type, amount, amountLeft } = recordOf(balance)
  if (type !== 'BOOSTER' || !(Number(amount) > 0)) return null
  const limit = recordOf(monthlyChargeLimit)
  const used = recordOf(monthlyUsed)
  const currency = [limit.currency, used.currency].find(text => typeof text === 'string' && text !== '') as string | undefined
  return {
    balance_cents: cents(amountLeft),
    total_cents: cents(amount),
    monthly_charge_limit_enabled: monthlyChargeLimitEnabled === true,
    monthly_charge_limit_cents: integer(limit.priceInCents) ?? 0,
    monthly_used_cents: integer(used.priceInCents) ?? 0,
    currency: currency ?? 'USD'
  }
}

/** Something is never shown as nothing. */
function cents(amount: unknown): number {
  const value = Number(amount) / PER_CENT
  if (!Number.isFinite(value)) return 0
  return value > 0 && value < 1 ? 1 : Math.round(value)
}

/** Numbers may come as text. */
function integer(value: unknown): number | undefined {
  if (typeof value !== 'number' && (typeof value !== 'string' || value.trim() === '')) return undefined
  const number = Math.trunc(Number(value))
  return Number.isSafeInteger(number) ? number : undefined
}

/** Throws AccountProblem when the answer names no user. */
export function readUserInfoAnswer(answer: unknown): UserInfo {
  const me = recordOf(answer)
  const userId = text(me.user_id)
  if (userId === undefined) throw new AccountProblem('the account service answered with no user', { status: 200 })
  const { phone } = me
  return {
    kind: 'ok',
    userInfo: {
      userId,
      nickname: text(me.nickname) ?? '',
      status: scalar(me.status) ?? '',
      region: text(me.region) ?? '',
      userLevel: scalar(me.user_level) ?? 0,
      userLevelName: text(me.user_level_name) ?? '',
      domain: scalar(me.domain) ?? 0,
      domainName: text(me.domain_name) ?? '',
      globalId: text(me.global_id),
      bio: text(me.bio),
      avatar: text(me.avatar),
      username: text(me.username),
      email: text(me.email),
      phone: isTable(phone) ? { countryCode: text(phone.country_code) ?? '', number: text(phone.number) ?? '' } : undefined,
      createdTime: scalar(me.created_time),
      lastLoginTime: scalar(me.last_login_time)
    }
  }
}

function text(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}

function scalar(value: unknown): string | number | undefined {
  return typeof value === 'string' || (typeof value === 'number' && Number.isFinite(value)) ? value : undefined
}
