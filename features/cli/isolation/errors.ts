/** Errors on their way between a pack's process and the server: what is caught there is what was thrown here. */
import { AppError, BlobMissing, BlobTooLarge, type ErrorSpec, LeaseLost, PassingFailure } from '../../../kernel/index.ts'
import { TurnFailure } from '../../agent/index.ts'
import { OutboundRefused } from '../../llm/index.ts'
import { ToolRefusal } from '../../tools/index.ts'

/** Classes that somebody may ask for with `instanceof`. */
const classes: Readonly<Record<string, { readonly prototype: Error }>> = {
  AppError,
  BlobMissing,
  BlobTooLarge,
  LeaseLost,
  OutboundRefused,
  PassingFailure,
  ToolRefusal,
  TurnFailure,
  TypeError,
  RangeError,
  SyntaxError
}

/** What is told of an error. */
export interface ErrorFacts {
  readonly kind?: string | undefined
  readonly name: string
  readonly message: string
  readonly stack?: string | undefined
  /** Its own fields: code, spec, data, details, info. */
  readonly fields: Readonly<Record<string, unknown>>
  readonly cause?: unknown
}

const told = new Set(['name', 'message', 'stack', 'cause'])

export function factsOfError(error: Error): ErrorFacts {
  const kind = Object.keys(classes).find(name => (name === 'AppError' ? AppError.is(error) : error instanceof (classes[name] as never)))
  const own = Object.entries(error).filter(([key, value]) => !told.has(key) && typeof value !== 'function')
  const code = (error as { code?: unknown }).code
  if (kind !== 'AppError' && (typeof code === 'string' || typeof code === 'number')) own.push(['code', code])
  const { name, message, stack, cause } = error
  return { kind, name, message, stack, fields: Object.fromEntries(own), cause }
}

export function errorOf({ kind, name, message, stack, fields, cause }: ErrorFacts): Error {
  const found = kind === undefined ? undefined : classes[kind]
  const options = cause === undefined ? {} : { cause }
  const error =
    found === AppError
      ? new AppError(fields.spec as ErrorSpec, {
          message,
          data: fields.data,
          details: fields.details as never,
          ...options
        })
      : new Error(message, options)
  if (found && found !== AppError) Object.setPrototypeOf(error, found.prototype)
  for (const [key, value] of found === AppError ? [] : Object.entries(fields))
    Object.defineProperty(error, key, { value, configurable: true, writable: true })
  if (error.name !== name) Object.defineProperty(error, 'name', { value: name, configurable: true, writable: true })
  if (stack !== undefined) Object.defineProperty(error, 'stack', { value: stack, configurable: true, writable: true })
  return error
}
