/** Headers that the environment adds to every model request. */

/** Credentials, because the environment is no source of them, and what belongs to the connection. */
const notOurs = /^((proxy-)?authorization|cookie|(.*-)?api-key|host|connection|content-length|transfer-encoding)$/

/** `Name: value` lines, names in lower case; lines that are no header, and headers that a request makes itself, are passed over. */
export function extraHeaders(text: string | undefined): Readonly<Record<string, string>> {
  const lines = (text ?? '').split(/\r?\n/).flatMap(line => {
    const [, name, value] = /^\s*([\w!#$%&'*+.^`|~-]+)\s*:\s*(.*?)\s*$/.exec(line) ?? []
    return name !== undefined && value && !notOurs.test(name.toLowerCase()) ? [[name.toLowerCase(), value] as const] : []
  })
  return Object.fromEntries(lines)
}
