/** Which document the live directory is. */

/**
 * `SVC_CODE_CATALOG_URL`, else the deployment option: the root of a directory, or its document when the path ends in `.json`. Undefined
 * for `off` and nothing: no live directory. What is no URL stays as it is, the request then says so.
 */
export function directoryUrl(env: NodeJS.ProcessEnv, configured: string): string | undefined {
  const given = (env.SVC_CODE_CATALOG_URL ?? configured).trim()
  if (given === '' || given.toLowerCase() === 'off') return undefined
  if (!URL.canParse(given)) return given
  const url = new URL(given)
  if (!url.pathname.endsWith('.json')) url.pathname = `${url.pathname.replace(/\/+$/, '')}/api.json`
  return url.href
}
