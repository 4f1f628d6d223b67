/** Headers that the environment adds to every model request. */

/** `Name: value` lines, names in lower case; lines that are no header are passed over. */
export function extraHeaders(text: string | undefined): Readonly<Record<string, string>> {
  const lines = (text ?? '').split(/\r?\n/).flatMap(line => {
    const [, name, value] = /^\s*([\w!#$%&'*+.^`|~-]+)\s*:\s*(.*?)\s*$/.exec(line) ?? []
    return name !== undefined && value ? [[name.toLowerCase(), value] as const] : []
  })
  return Object.fromEntries(lines)
}
