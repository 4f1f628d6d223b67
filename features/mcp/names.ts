/** Names of tools of MCP servers. */

const longestName = 64

/** `mcp__<server>__<tool>`: other characters become `_`, runs of it one; a name that is too long is cut and ends in a hash of the whole. */
export function toolName(server: string, tool: string): string {
  const part = (text: string) => text.replace(/[^A-Za-z0-9_-]/g, '_').replace(/_+/g, '_')
  const name = `mcp__${part(server)}__${part(tool)}`
  return name.length <= longestName ? name : `${name.slice(0, longestName - 9)}_${fnv1a(`mcp__${server}__${tool}`)}`
}

export function fnv1a(text: string): string {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0
  return hash.toString(16).padStart(8, '0')
}
