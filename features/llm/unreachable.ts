/** Why nobody answered at an address, in plain words: what the codes of sockets, names, certificates and the HTTP client mean. */
import { ProxyProblem } from './proxies.ts'

const words: Readonly<Record<string, string>> = {
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'the name server did not answer',
  ECONNREFUSED: 'nothing listens there',
  EHOSTUNREACH: 'there is no way to this host',
  ENETUNREACH: 'there is no way to this network',
  EADDRNOTAVAIL: 'there is no way to this address',
  ETIMEDOUT: 'nobody answered in time',
  ECONNRESET: 'the connection was cut',
  EPIPE: 'the connection was cut',
  UND_ERR_CONNECT_TIMEOUT: 'nobody answered in time',
  UND_ERR_HEADERS_TIMEOUT: 'connected, and no answer came in time',
  UND_ERR_BODY_TIMEOUT: 'the answer stopped coming',
  UND_ERR_SOCKET: 'the server closed the connection',
  UND_ERR_INVALID_ARG: 'the request could not be built: check the address and the key',
  ERR_STREAM_PREMATURE_CLOSE: 'the answer broke off',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is signed by nobody but itself',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is signed by somebody whom this machine does not know',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is signed by somebody whom this machine does not know',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is signed by somebody whom this machine does not know',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host'
}

/** What Node's TLS says when the first bytes of the other side are no TLS. */
const noTls = /^ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|UNKNOWN_PROTOCOL|RECORD_TOO_LARGE)|^EPROTO$/

/** The problem of a proxy that `error` or one of its causes is. */
function proxyProblemOf(error: unknown): ProxyProblem | undefined {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof ProxyProblem) return at
  return undefined
}

/** True when the other side does not speak the protocol of the address: another try changes nothing. */
export function isOtherProtocol(error: unknown): boolean {
  return noTls.test(codeOf(error)) || isTlsOnly(error)
}

/** `host not found (ENOTFOUND)`: words where there are some, and the code; of a proxy, what it did. `error` holds the code, or one of its causes does. */
export function whyUnreachable(error: unknown): string {
  const problem = proxyProblemOf(error)
  if (problem) return problem.message
  const code = codeOf(error)
  if (code === '') return 'the connection ended too early'
  const said = explained(error, code)
  return said === undefined ? code : `${said} (${code})`
}

/** Schemes of the addresses at which requests failed: the errors do not tell them. */
const schemes = new WeakMap<object, string>()

/** Remembers the address of a request that failed. */
export function failedAt<T>(error: T, { protocol }: URL): T {
  if (typeof error === 'object' && error !== null) schemes.set(error, protocol)
  return error
}

interface SocketFacts {
  readonly message?: string
  readonly socket?: { readonly bytesRead?: unknown }
  /** What the parser could not read. */
  readonly data?: Uint8Array | string
}

function explained(error: unknown, code: string): string | undefined {
  if (noTls.test(code)) return 'this port speaks http, not https'
  if (isTlsOnly(error)) return 'this port speaks https, not http'
  const { socket, message = '' } = error as SocketFacts
  const plain = schemes.get(error as object) === 'http:'
  if (code === 'ECONNRESET' && message.includes('before secure TLS'))
    return 'the server closed the connection at once; it may speak http, not https'
  if (plain && code === 'UND_ERR_SOCKET' && socket?.bytesRead === 0)
    return 'the server closed the connection without a word; it may speak https, not http'
  if (code.startsWith('HPE_')) return 'what came is no HTTP answer'
  return words[code]
}

/** What came in answer to plain HTTP is an alert of TLS (RFC 8446, section 5.1). */
function isTlsOnly(error: unknown): boolean {
  const { data } = (error ?? {}) as SocketFacts
  if (data === undefined || schemes.get(error as object) !== 'http:') return false
  const [type, version] = Buffer.from(data)
  return type === 21 && version === 3
}

/** The first code among an error and its causes; empty when there is none. */
export function codeOf(error: unknown): string {
  for (let at: unknown = error, depth = 0; typeof at === 'object' && at !== null && depth < 5; depth++) {
    const { code, errors, cause, name } = at as { code?: unknown; errors?: unknown[]; cause?: unknown; name?: unknown }
    if (typeof code === 'string') return code
    // The parser of the HTTP client names no code for a body that ends in the middle of a chunk.
    if (name === 'HTTPParserError') return 'HPE_INVALID'
    at = cause ?? errors?.[0]
  }
  return ''
}
