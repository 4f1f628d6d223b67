/** Configuration of an MCP server: as requests bring it, and as files hold it (where `transport` may be left out). */
import { checker, type Detail, named, oneOf, problems, type Static, Type } from '../../kernel/index.ts'

const text = Type.String()
const Milliseconds = Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1 })
const common = {
  enabled: Type.Optional(Type.Boolean({ description: 'default true' })),
  startupTimeoutMs: Type.Optional(Milliseconds),
  toolTimeoutMs: Type.Optional(Milliseconds),
  enabledTools: Type.Optional(Type.Array(text, { description: 'only these' })),
  disabledTools: Type.Optional(Type.Array(text))
}
const stdio = {
  transport: Type.Literal('stdio'),
  command: Type.String({ minLength: 1 }),
  args: Type.Optional(Type.Array(text)),
  env: Type.Optional(Type.Record(text, text)),
  cwd: Type.Optional(text),
  executor: Type.Optional(Type.Literal('local')),
  runtime_id: Type.Optional(Type.Literal('local')),
  ...common
}
const remote = {
  transport: oneOf(['http', 'sse']),
  url: Type.String({ minLength: 1, examples: ['https://example.com/mcp'] }),
  headers: Type.Optional(Type.Record(text, text)),
  auth: Type.Optional(Type.Literal('oauth')),
  bearerTokenEnvVar: Type.Optional(Type.String({ minLength: 1 })),
  ...common
}

export const StdioConfig = named('McpStdioConfig', Type.Object(stdio))
export const RemoteConfig = Type.Object(remote)
export const ServerConfig = Type.Union([StdioConfig, RemoteConfig])
export type StdioConfig = Static<typeof StdioConfig>
export type RemoteConfig = Static<typeof RemoteConfig>
export type ServerConfig = StdioConfig | RemoteConfig

const transports = ['stdio', 'http', 'sse']

export type Checked = { readonly config: ServerConfig } | { readonly problems: readonly Detail[] }

/** `inferred`: a missing transport follows from `command` or `url`. Unknown keys are dropped. `root` of the paths of problems. */
export function checkConfig(value: unknown, { inferred = false, root = '' }: { inferred?: boolean; root?: string } = {}): Checked {
  const at = (field: string) => (root === '' ? field : `${root}.${field}`)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { problems: [{ path: root, message: 'is no table' }] }
  const given = { ...(value as Record<string, unknown>) }
  if (inferred && given.transport === undefined) {
    if (typeof given.command === 'string') given.transport = 'stdio'
    else if (typeof given.url === 'string') given.transport = given.type === 'sse' ? 'sse' : 'http'
  }
  if (!transports.includes(given.transport as string))
    return { problems: [{ path: at('transport'), message: 'must be stdio, http or sse' }] }
  const schema = given.transport === 'stdio' ? StdioConfig : RemoteConfig
  const known = Object.fromEntries(Object.entries(given).filter(([key]) => key in schema.properties))
  const found = problems(schema, known, root)
  if (found.length > 0) return { problems: found }
  const config = known as ServerConfig
  if (config.transport !== 'stdio' && !isRemoteUrl(config.url))
    return { problems: [{ path: at('url'), message: 'must be an http(s) address' }] }
  return { config }
}

const isRemoteUrl = (url: string) => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)

/** What files hold: `{ "mcpServers": { "<name>": { ... } } }`, and other keys, which are kept. */
const ServerFile = Type.Object({ mcpServers: Type.Optional(Type.Record(text, Type.Unknown())) }, { additionalProperties: true })
export const isServerFile = (value: unknown): value is Static<typeof ServerFile> => checker(ServerFile).Check(value)

/** Without secrets: names of variables and headers in place of their values. */
export function redacted(config: ServerConfig): Record<string, unknown> {
  const sorted = (table: Readonly<Record<string, string>> | undefined) => Object.keys(table ?? {}).sort()
  if (config.transport === 'stdio') {
    const { env, ...rest } = config
    return { ...rest, ...(env ? { envKeys: sorted(env) } : {}) }
  }
  const { headers, url, ...rest } = config
  return { ...rest, url: withoutCredentials(url), ...(headers ? { headerKeys: sorted(headers) } : {}) }
}

/** A URL may carry a password, or a key in its query. */
function withoutCredentials(address: string): string {
  const url = new URL(address)
  url.username = ''
  url.password = ''
  for (const name of [...url.searchParams.keys()]) url.searchParams.set(name, '***')
  return url.href
}
