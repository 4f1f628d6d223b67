/** Longest answers that servers allow, as they say it when more is asked for: requests to the same model ask for no more, whoever asks. */
import type { LlmError, LlmRequest, RequestForm } from '../llm/index.ts'
import { PerModel } from './per-model.ts'

const about = /max[\w ]{0,12}tokens|maximum tokens/i
const limits: readonly RegExp[] = [
  /> (\d+), which is the maximum/,
  /\[ ?[01] ?, ?(\d+) ?\]/,
  /(?:at most|less than or equal to|<=|model limit of|maximum (?:value|limit) (?:is|of)) ?[`']?(\d+)/i
]
/** Names the first number that is too many. */
const beyond = /to (\d+) \(exclusive\)/

/** A text that compares the limit with the window is taken for a window that is full. */
const codes: readonly string[] = ['provider.api_error', 'context.overflow']
/** Errors inside a stream come without one. */
const statuses: readonly (number | undefined)[] = [undefined, 400, 422]

/** In tokens; undefined: the error is about something else. */
function limitIn({ code, status, message }: LlmError): number | undefined {
  if (!codes.includes(code) || !statuses.includes(status) || !about.test(message)) return undefined
  const said = limits.map(limit => limit.exec(message)?.[1]).find(found => found !== undefined)
  const limit = said === undefined ? Number(beyond.exec(message)?.[1]) - 1 : Number(said)
  return limit > 0 ? limit : undefined
}

/** `told`: hears of each limit that is kept from now on. */
export function outputLimits(told: (model: LlmRequest['model'], limit: number) => void): RequestForm {
  const known = new PerModel<number>()
  return {
    fit(request) {
      const found = known.of(request)
      return found.length === 0 ? request : { ...request, max_output_tokens: Math.min(request.max_output_tokens ?? Infinity, ...found) }
    },
    refused(request, error) {
      const limit = limitIn(error)
      if (limit === undefined || (request.max_output_tokens ?? Infinity) <= limit) return false
      // Not new: another request was told at the same time.
      if (known.add(request, limit)) told(request.model, limit)
      return true
    }
  }
}
