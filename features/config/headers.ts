/** Keys and headers that records bring into requests. */
import type { ConfigRemark } from './service.ts'

/** True for what can be sent in a header, as keys are (RFC 9110, section 5.5); blanks around it are not sent. */
export function isHeaderValue(value: string): boolean {
  return /^[\t -~\x80-\xff]*$/.test(value.trim())
}

/** True for what a header can be called (RFC 9110, section 5.1). */
function isHeaderName(name: string): boolean {
  return /^[!#$%&'*+.^_`|~\w-]+$/.test(name)
}

/** What is said of a value for which `isHeaderValue` is false. */
export const notAHeaderValue = 'must be one line of characters that can be sent in a header'

/** What a request could not be built with, of the record at a path. */
export function reviewSent(
  path: string,
  {
    api_key = '',
    custom_headers = {}
  }: { readonly api_key?: string | undefined; readonly custom_headers?: Readonly<Record<string, string>> | undefined }
): ConfigRemark[] {
  const headers = Object.entries(custom_headers).map(([name, value]) => [`custom_headers.${name}`, value] as const)
  const names = Object.keys(custom_headers).filter(name => !isHeaderName(name))
  return [
    ...[['api_key', api_key] as const, ...headers].flatMap(([field, value]) =>
      isHeaderValue(value) ? [] : [{ path: `${path}.${field}`, message: notAHeaderValue, refused: true }]
    ),
    ...names.map(name => ({ path: `${path}.custom_headers.${name}`, message: 'no header can have this name', refused: true }))
  ]
}
