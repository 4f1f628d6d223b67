/** Configuration of an MCP server: as requests bring it, and as files hold it (where `transport` may be left out). */
import { checker, type Detail, isRecord, milliseconds, named, oneOf, problems, type Static, Type } from '../../kernel/index.ts'

export const transports = ['stdio', 'http', 'sse'] as const

const text = Type.String()
export const Milliseconds = milliseconds({ minimum: 1 })
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

type Checked = { readonly config: ServerConfig } | { readonly problems: readonly Detail[] }

/** `inferred`: a missing transport follows from `command` or `url`. Unknown keys are dropped. `root` of the paths of problems. */
export function checkConfig(value: unknown, { inferred = false, root = '' }: { inferred?: boolean; root?: string } = {}): Checked {
  const at = (field: string) => (root === '' ? field : `${root}.${field}`)
  if (!isRecord(value)) return { problems: [{ path: root, message: 'is no table' }] }
  const given: Record<string, unknown> = { ...value }
  if (inferred && given.transport === undefined) {
    if (typeof given.command === 'string') given.transport = 'stdio'
    else if (typeof given.url === 'string') given.transport = given.type === 'sse' ? 'sse' : 'http'
  }
  if (!transports.some(each => each === given.transport))
    return { problems: [{ path: at('transport'), message: 'must be stdio, http or sse' }] }
  const schema = given.transport === 'stdio' ? StdioConfig : RemoteConfig
  const known = Object.fromEntries(Object.entries(given).filter(([key]) => Object.hasOwn(schema.properties, key)))
  const found = problems(schema, known, root)
  if (found.length > 0) return { problems: found }
  const config = known as ServerConfig
  const unusable = config.transport === 'stdio' ? reviewProgram(config) : reviewRequest(config)
  return unusable.length > 0 ? { problems: unusable.map(({ path, message }) => ({ path: at(path), message })) } : { config }
}

/** What no program could be started with. The texts may be secrets, and are not repeated. */
function reviewProgram({ command, args = [], env = {}, cwd = '' }: StdioConfig): Detail[] {
  const texts = [
    ['command', command],
    ...args.map((arg, at) => [`args.${at}`, arg]),
    ...Object.entries(env).map(([name, value]) => [`env.${name}`, name + value]),
    ['cwd', cwd]
  ] as [string, string][]
  return texts.filter(([, text]) => text.includes('\0')).map(([path]) => ({ path, message: 'must not contain a null character' }))
}

/** What no request could be built with. */
function reviewRequest({ url, headers = {} }: RemoteConfig): Detail[] {
  const unsent = Object.entries(headers).filter(header => !isHeader(header))
  return [
    ...(isRemoteUrl(url) ? [] : [{ path: 'url', message: 'must be an http(s) address' }]),
    ...unsent.map(([name]) => ({ path: `headers.${name}`, message: 'must be a name and one line that can be sent as a header' }))
  ]
}

/** A request would be refused as this is. */
function isHeader([name, value]: [string, string]): boolean {
  try {
    new Headers().append(name, value)
    return true
  } catch {
    return false
  }
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
