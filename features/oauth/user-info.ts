/** The account service's profile answer in the words of the contract (contract 1, Usage and account information). */
import { recordOf } from '../llm/index.ts'
import { isTable } from '../providers/index.ts'
import type { UserInfo } from './contract.ts'
import { AccountProblem } from './problem.ts'

/** Throws AccountProblem when the answer names no user. */
export function readUserInfoAnswer(answer: unknown): UserInfo {
  const me = recordOf(answer)
  const userId = text(me.user_id)
  if (userId === undefined) throw new AccountProblem('the account service answered with no user', { status: 200 })
  const { phone } = me
  const optional = {
    globalId: text(me.global_id),
    bio: text(me.bio),
    avatar: text(me.avatar),
    username: text(me.username),
    email: text(me.email),
    phone: isTable(phone) ? { countryCode: text(phone.country_code) ?? '', number: text(phone.number) ?? '' } : undefined,
    createdTime: scalar(me.created_time),
    lastLoginTime: scalar(me.last_login_time)
  }
  return {
    kind: 'ok',
    userInfo: {
      userId,
      nickname: text(me.nickname) ?? '',
      status: scalar(me.status) ?? '',
      region: text(me.region) ?? '',
      userLevel: scalar(me.user_level) ?? '',
      userLevelName: text(me.user_level_name) ?? '',
      domain: scalar(me.domain) ?? '',
      domainName: text(me.domain_name) ?? '',
      ...(Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)) as Partial<UserInfo['userInfo']>)
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
