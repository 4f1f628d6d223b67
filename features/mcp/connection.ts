/**
 * One connection to an MCP server by the official client: made within a time, its tools listed, calls bounded. The library loads with the
 * first one.
 */
import { pathToFileURL } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { firstAbort, headOf, longestMs, redactText, untilAborted, waitAtMost } from '../../kernel/index.ts'
import { withoutSecrets } from '../llm/index.ts'
import type { Form } from './elicitation.ts'
import type { Entry } from './layers.ts'
import { type Listed, Listing } from './listing.ts'
import { type RunningCall, RunningCalls } from './running-calls.ts'
import { graceMs, loadSdk, type TransportPorts, transportTo } from './transports.ts'
import { inWords } from './words.ts'

/** The server wants a login; its message may be shown. */
export class NeedsAuth extends Error {
  override readonly name = 'NeedsAuth'
}

export interface ConnectPorts extends TransportPorts {
  readonly version: string
  /** Users can be asked what servers want to know. */
  readonly asks: () => boolean
  /** Limit of the start without one in the configuration of the server, ms. */
  readonly startupMs: () => number
  /** A connection that nobody waits for is ending; whoever closes all of them waits for it, too. */
  readonly ending: (end: Promise<void>) => void
}

/** The server knows nothing of the session any more, and did nothing (MCP specification, Session Management). */
export class SessionGone extends Error {
  override readonly name = 'SessionGone'
}

export interface CallOptions extends RunningCall {
  readonly signal: AbortSignal
  readonly progress: (update: { readonly text?: string; readonly percent?: number }) => void
}

export interface Connection {
  readonly listed: Listed
  /** Resolves with what the server answered, of whatever shape. Rejects with NeedsAuth when its login does not hold any more, with SessionGone. */
  call(name: string, args: Readonly<Record<string, unknown>>, options: CallOptions): Promise<Readonly<Record<string, unknown>>>
  /** Lists the tools anew; whether they are others. */
  refresh(): Promise<boolean>
  /** Rejects when the server does not answer within 5 s. */
  ping(): Promise<void>
  close(): Promise<void>
}

interface ConnectionEvents {
  /** It ended by itself. */
  closed(why: string): void
  toolsChanged(): void
}

/** Lists that a start asks for again because they changed meanwhile. */
const relists = 3
const pages = 100

/** Rejects with NeedsAuth, or with why for people. */
export async function connect(
  entry: Entry,
  cwd: string,
  ports: ConnectPorts,
  signal: AbortSignal,
  events: ConnectionEvents
): Promise<Connection> {
  const { config } = entry
  const startupMs = () => config.startupTimeoutMs ?? ports.startupMs()
  const limit = AbortSignal.timeout(startupMs())
  const sdk = await loadSdk()
  const made = transportTo(entry, cwd, ports, sdk)
  const { signal: starting, end: started } = firstAbort(signal, limit) // the library listens to it, and never stops
  /** Servers quote what they were given when they end; this is shown and kept. */
  const shown = (why: string) => redactText(withoutSecrets(why, made.secrets))
  const asks = ports.asks()
  const capabilities = { roots: {}, ...(asks ? { elicitation: { form: {} } } : {}) }
  const client = new sdk.Client({ name: 'svc-code', version: ports.version }, { capabilities })
  const calls = new RunningCalls()
  if (asks) client.setRequestHandler(sdk.ElicitRequestSchema, ({ params }, { signal: over }) => calls.ask(params as Form, over)) // forms alone
  client.setRequestHandler(sdk.ListRootsRequestSchema, () => ({ roots: [{ uri: pathToFileURL(cwd).href }] }))
  let open = true
  const close = async () => {
    open = false
    if ('terminateSession' in made.transport) await waitAtMost(made.transport.terminateSession(), graceMs).catch(() => undefined)
    await client.close()
    await made.transport.close() // the library has let go of it, and waits for nothing, when it has closed it by itself
  }
  const list = async (within: AbortSignal): Promise<Listed> => {
    const listing = new Listing(ports.limits.tools)
    let cursor: unknown
    for (let page = 0; page < pages; page++) {
      const params = typeof cursor === 'string' ? { cursor } : {}
      const answer = await client.request({ method: 'tools/list', params }, sdk.ResultSchema, { signal: within, timeout: longestMs })
      if (!Array.isArray(answer.tools)) throw new Error('the server answered no list of its tools')
      for (const tool of answer.tools) listing.add(tool)
      cursor = answer.nextCursor
      if (typeof cursor !== 'string') break
    }
    return listing
  }
  try {
    await untilAborted(client.connect(made.transport as Transport, { signal: starting, timeout: longestMs }), starting)
    // From here on: it may end with the list of its tools, or in the middle of it.
    let isStarting = true
    client.onclose = () => {
      if (open && !isStarting) events.closed(shown(made.trouble() ?? closed))
      open = false
    }
    // Answers come on the one stream of such a server, and another one begins another session there.
    client.onerror = error => void (error instanceof sdk.SseError && client.close())
    // Also while the first list is on its way: that one may be what it was before.
    let changed = false
    let toolsChanged = () => {
      changed = true
    }
    client.setNotificationHandler(sdk.ToolListChangedNotificationSchema, () => toolsChanged())
    let listed = client.getServerCapabilities()?.tools ? await list(starting) : new Listing(0)
    for (let again = 0; changed && again < relists; again++) {
      changed = false
      listed = await list(starting)
    }
    if (!open) throw new Error(closed)
    isStarting = false
    toolsChanged = () => events.toolsChanged()
    return {
      get listed() {
        return listed
      },
      call: (name, args, options) =>
        calls.run(options, late => {
          const { signal, end } = firstAbort(options.signal, late)
          const onprogress = ({ progress: done, total, message }: { progress: number; total?: number; message?: string }) =>
            options.progress({ text: message, percent: total ? Math.min(100, (done / total) * 100) : undefined })
          const request = { method: 'tools/call', params: { name, arguments: { ...args } } } as const
          return client
            .request(request, sdk.ResultSchema, { signal, timeout: longestMs, onprogress })
            .catch((error: unknown) => {
              if (wantsLogin(error)) throw new NeedsAuth(wanted, { cause: error })
              throw isStatus(error, 404) ? new SessionGone('the server has ended the session', { cause: error }) : error
            })
            .finally(end)
        }),
      async refresh() {
        const before = listed
        listed = await list(AbortSignal.timeout(startupMs()))
        return !isDeepStrictEqual(before, listed)
      },
      async ping() {
        await client.ping({ timeout: 5000 })
      },
      close
    }
  } catch (error) {
    open = false
    ports.ending(close()) // what is left of a start that failed
    throw reasonOf(error, { signal, limit, trouble: made.trouble(), ms: startupMs(), shown })
  } finally {
    started()
  }
}

const wanted = 'the server wants a login'
const closed = 'the connection was closed'

function wantsLogin(error: unknown): boolean {
  return (error as Error).name === 'UnauthorizedError' || isStatus(error, 401)
}

/** An answer of this HTTP status. Codes of an McpError are the server's own. */
function isStatus(error: unknown, status: number): boolean {
  const { code, name } = error as Error & { readonly code?: unknown }
  return code === status && name !== 'McpError'
}

interface Circumstances {
  readonly signal: AbortSignal
  readonly limit: AbortSignal
  readonly trouble: string | undefined
  readonly ms: number
  /** Without what the server was given. */
  readonly shown: (why: string) => string
}

function reasonOf(error: unknown, { signal, limit, trouble, ms, shown }: Circumstances): Error {
  if (signal.aborted) return new Error('it was stopped')
  if (limit.aborted) return new Error(shown(`it did not start within ${ms / 1000} s${trouble === undefined ? '' : `: ${trouble}`}`))
  if (wantsLogin(error)) return new NeedsAuth(wanted)
  return new Error(headOf(shown(trouble ?? inWords(error)), 2000), { cause: error })
}
