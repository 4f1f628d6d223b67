/** What servers say of a failure: error objects of many shapes, or a text, read into one shape. */
import { headOf } from '../../kernel/index.ts'
import { listOf, parseJson, recordOf } from './wire-values.ts'

/** Of what a provider says. */
const MAX_CHARACTERS = 500

/** An error object as providers write it, as far as they agree. */
export interface UpstreamFailure {
  readonly message: string
  /** Provider's `code` and `type`, joined, lower case. */
  readonly kind: string
}

/** The error in an object that a server sent where an answer belongs: its `error`, itself when it says that it is one, or its status. */
export function errorIn(value: object): unknown {
  const { error, type, object, base_resp } = recordOf(value)
  if (base_resp && !error) return failedStatus(recordOf(base_resp))
  return error || (type === 'error' || object === 'error' ? value : undefined)
}

/** Some servers put a status into every answer; 0 is success. */
function failedStatus({ status_code, status_msg }: Readonly<Record<string, unknown>>): unknown {
  return status_code ? { code: status_code, message: status_msg } : undefined
}

/** Of a body: JSON, or the beginning of a text. */
export function readFailure(body: string): UpstreamFailure {
  const value = parseJson(body)
  if (value !== undefined) return readFailureValue(value)
  // A proxy's page or plain text. A page says nothing that fits in a line.
  return { kind: '', message: body.trimStart().startsWith('<') ? '' : cut(body) }
}

/** Of a value that was parsed already. */
export function readFailureValue(value: unknown): UpstreamFailure {
  const first = Array.isArray(value) ? value[0] : value
  if (typeof first === 'string') return { kind: '', message: cut(first) }
  const outer = recordOf(first)
  const inner = typeof outer.error === 'object' ? recordOf(outer.error) : outer
  const { detail } = recordOf(inner.message)
  const plain = [inner.message, outer.error, outer.message, outer.detail, outer.msg]
  const texts = [...plain, ...[detail, outer.detail, outer.errors].map(firstOf)]
  const message = texts.find(text => typeof text === 'string')
  // A gateway says that its provider failed; what the provider said stands beside it.
  const { raw } = recordOf(inner.metadata)
  const kind = [inner.code, inner.type, inner.status, outer.__type]
    .filter(word => typeof word === 'string' || typeof word === 'number')
    .join(' ')
  return {
    kind: kind.toLowerCase(),
    message: cut([message, raw].filter(text => typeof text === 'string' && text !== '').join(': '))
  }
}

/** What the first entry of a list of complaints says. */
function firstOf(list: unknown): unknown {
  const first = Array.isArray(list) ? list[0] : undefined
  if (typeof first === 'string') return first
  const { msg, message = msg, loc } = recordOf(first)
  const place = listOf(loc)
    .filter(step => step !== 'body')
    .join('.')
  return place !== '' && typeof message === 'string' ? `${place}: ${message}` : message
}

/** A text of somebody else as one line: at most `max` characters of it, and `…` behind them where it was cut. */
export function oneLine(text: string, max: number): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length > max ? `${headOf(line, max)}…` : line
}

const cut = (text: string) => oneLine(text, MAX_CHARACTERS)
