/** Failures of the way to a provider: sockets, names, certificates, proxies, the offline switch. */
import { traceOf } from './errors.ts'
import { OutboundRefused } from './outbound.ts'
import { ProxyProblem } from './proxies.ts'
import type { LlmError } from './request.ts'
import { codeOf, isOtherProtocol, whyUnreachable } from './unreachable.ts'

/** Of sockets, the HTTP client and its parser, TLS, and of bodies that do not decompress. */
const transportCodes =
  /^(UND_ERR_|HPE_|E[A-Z0-9]+$|ERR_(TLS|SSL|INVALID_URL|INVALID_CHAR|STREAM_PREMATURE_CLOSE)|ERR__ERROR_|Z_|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/

/** True for failures of sockets, names, certificates and the HTTP client; everything else is a bug of ours. */
export function isTransportError(error: unknown): boolean {
  return transportCodes.test(codeOf(error))
}

/** The connection failed before or during the answer (undefined: it ended too early). `where` names the host, without credentials. */
export function transportError(error: unknown, where: string, headers: Readonly<Record<string, string>> = {}): LlmError {
  if (error instanceof OutboundRefused) {
    return { code: 'provider.connection_error', name: 'OfflineError', message: error.message, retryable: false }
  }
  if (error instanceof ProxyProblem) {
    const message = `the connection to ${where} failed: ${error.message}`
    return { code: 'provider.connection_error', name: 'ProxyError', message, retryable: error.transient }
  }
  const code = codeOf(error)
  if (code === 'UND_ERR_INVALID_ARG' || code === 'ERR_INVALID_URL' || code === 'ERR_INVALID_CHAR') {
    // The library's text may quote a header value.
    return {
      code: 'provider.api_error',
      name: 'RequestError',
      retryable: false,
      message: `the request to ${where} could not be built: check base_url, key and headers`
    }
  }
  const certificate = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS/.test(code)
  const name = /TIMEOUT/.test(code) ? 'TimeoutError' : 'ConnectionError'
  const message = `the connection to ${where} failed: ${whyUnreachable(error)}`
  const final = certificate || isOtherProtocol(error)
  return { code: 'provider.connection_error', name, message, retryable: !final, ...traceOf(headers) }
}
