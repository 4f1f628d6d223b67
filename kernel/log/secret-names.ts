/** Which names say that a secret stands behind them. One rule for logs, texts and the configuration. */

/** Stands in the place of a secret. */
export const REDACTED = '[redacted]'

const endings =
  /(?:(?:api|access|private|secret|signing|encryption|serviceaccount)key|secret|password|passwd|passphrase|credential|authorization|cookie|jwt)(?:s|value|text|json|data)?$/
/** `tokens` alone counts what it holds: `max_tokens` is a number of them. */
const tokens = /(?:token(?:value)?|(?:^|access|refresh|auth|api|bearer|session)tokens)$/
const whole = new Set(['pat', 'serviceaccount', 'serviceaccountjson'])
/** Names that mean a secret in a URL only. */
const inUrl = /(?:key|sig|signature|^code|^auth)$/

/** `api_key`, `apiKey`, `client-secret`, `SEARCH_TOKEN`, `passwords`; not `has_api_key` or `max_tokens`. */
export function isSecretName(name: string): boolean {
  if (/^has(?:[_-]|[A-Z])/.test(name)) return false
  const plain = name.toLowerCase().replace(/[^a-z0-9]/g, '')
  return endings.test(plain) || tokens.test(plain) || whole.has(plain)
}

/** The same for a parameter of a URL: `key`, `subscription-key`, `sig`, `code` as well. */
export function isSecretParameter(name: string): boolean {
  return isSecretName(name) || inUrl.test(name.toLowerCase().replace(/[^a-z0-9]/g, ''))
}
