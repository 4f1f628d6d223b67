/** How a server is reached: over the streams of a program, or over HTTP with what it is to be let in by. */
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { isSecretName, tailOf } from '../../kernel/index.ts'
import { secretsIn, secretsSent } from '../llm/index.ts'
import type { Shell } from '../tools-shell/index.ts'
import { BrokenAnswers, reconnectionOptions } from './broken-answers.ts'
import type { RemoteConfig, StdioConfig } from './config.ts'
import { type Entry, program, runDir } from './layers.ts'
import type { RemoteFetch } from './remote.ts'
import { StdioTransport } from './stdio.ts'

/** Between the end of its input, SIGTERM and SIGKILL; what a remote server may take to end a session. */
export const graceMs = 2000

export async function loadSdk() {
  const [{ Client }, http, sse, types] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/index.js'),
    import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
    import('@modelcontextprotocol/sdk/client/sse.js'),
    import('@modelcontextprotocol/sdk/types.js')
  ])
  return { Client, ...http, ...sse, ...types }
}
type Sdk = Awaited<ReturnType<typeof loadSdk>>

/** Tokens of a login. */
export interface TokenSource {
  /** Undefined: there is none. */
  token(): Promise<string | undefined>
  /** After a refusal of the token: another one, or undefined. */
  renewed(refused: string): Promise<string | undefined>
  /** Called when the login on disk has become another one, by whichever server of the home; resolves to the undo. Without it nobody tells. */
  onChange?(listener: () => void): Promise<() => void>
}

interface ServerLimits {
  /** Tools of one server; others are left out. */
  readonly tools: number
  /** Bytes of one message. */
  readonly messageBytes: number
  readonly messagesPerSecond: number
}

export interface TransportPorts {
  readonly remote: RemoteFetch
  readonly shell: () => Shell | undefined
  /** Undefined: the server is not one that OAuth is for. */
  readonly tokens: (entry: Entry) => TokenSource | undefined
  readonly limits: ServerLimits
}

interface Made {
  readonly transport: Transport | (Transport & { terminateSession(): Promise<void> })
  /** Why it ended, as far as it knows. */
  trouble(): string | undefined
  /** What the server was given and may quote. */
  readonly secrets: readonly string[]
}

export function transportTo(entry: Entry, cwd: string, ports: TransportPorts, sdk: Sdk): Made {
  const { config } = entry
  return config.transport === 'stdio' ? stdioTransport(entry, config, cwd, ports, sdk) : remoteTransport(entry, config, ports, sdk)
}

function stdioTransport(
  entry: Entry,
  config: StdioConfig,
  cwd: string,
  { shell, limits }: TransportPorts,
  { JSONRPCMessageSchema }: Sdk
): Made {
  const runs = shell()
  if (!runs) throw new Error('programs cannot be run here (the pack tools-shell is not active)')
  const transport = new StdioTransport({
    shell: runs,
    program: program(entry),
    args: config.args ?? [],
    cwd: runDir(entry, cwd),
    env: { ...entry.env, ...config.env },
    messageChars: limits.messageBytes,
    messagesPerSecond: limits.messagesPerSecond,
    graceMs,
    parse: value => JSONRPCMessageSchema.parse(value)
  })
  return {
    transport,
    secrets: secretsOfEnv(config.env ?? {}),
    trouble() {
      const said = transport.stderr.trim()
      return transport.trouble === undefined ? undefined : said === '' ? transport.trouble : `${transport.trouble}: ${tailOf(said, 1000)}`
    }
  }
}

function remoteTransport(entry: Entry, config: RemoteConfig, { remote, shell, tokens }: TransportPorts, sdk: Sdk): Made {
  const name = config.bearerTokenEnvVar
  // a project or a plugin sends nothing away that its programs would not get
  const bearer = name === undefined ? undefined : entry.mutable ? process.env[name] : shell()?.variable(name)
  if (name !== undefined && !bearer) {
    throw new Error(`the environment variable ${name} is not set${entry.mutable ? '' : ', or is a key of the server'}`)
  }
  const headers = { ...config.headers, ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }) }
  const source = tokens(entry)
  const fetch = source ? withTokens(remote.fetch, source) : remote.fetch
  const url = new URL(config.url)
  const requestInit = { headers }
  const secrets = [...Object.values(headers), ...secretsIn(config.url)]
  if (config.transport === 'sse') {
    const kept = keepingFailure(fetch)
    return { transport: new sdk.SSEClientTransport(url, { fetch: kept.fetch, requestInit }), trouble: kept.failure, secrets }
  }
  const broken = new BrokenAnswers()
  const transport = new sdk.StreamableHTTPClientTransport(url, { fetch: broken.over(fetch), requestInit, reconnectionOptions }) as Transport
  broken.watch(transport)
  return { transport, trouble: () => undefined, secrets }
}

/** Why the last request failed: the library makes one text of an error and all its causes. */
function keepingFailure(fetch: RemoteFetch['fetch']): { readonly fetch: RemoteFetch['fetch']; readonly failure: () => string | undefined } {
  let failure: string | undefined
  return {
    async fetch(url, init) {
      failure = undefined
      try {
        return await fetch(url, init)
      } catch (error) {
        if (error instanceof TypeError) failure = error.message // else it was given up
        throw error
      }
    },
    failure: () => failure
  }
}

/** Values of variables with a telling name, and those that look like a key. */
function secretsOfEnv(env: Readonly<Record<string, string>>): string[] {
  const named = Object.entries(env).flatMap(([name, value]) => (isSecretName(name) ? [value] : []))
  return [...named, ...secretsSent('', env)]
}

function withTokens(fetch: RemoteFetch['fetch'], source: TokenSource): RemoteFetch['fetch'] {
  const send = (url: string | URL, init: RequestInit | undefined, token: string | undefined) => {
    const headers = new Headers(init?.headers)
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
    return fetch(url, { ...init, headers })
  }
  return async (url, init) => {
    const token = await source.token()
    const answer = await send(url, init, token)
    if (answer.status !== 401 || token === undefined) return answer
    const fresh = await source.renewed(token)
    if (fresh === undefined) return answer
    await answer.body?.cancel()
    return await send(url, init, fresh)
  }
}
