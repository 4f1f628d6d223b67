/** Which server a command talks to: the one that runs on the home, or one that this process starts for itself. */
import { type Client, createClient, unwrap } from '../../client/index.ts'
import { readToken } from '../../kernel/access/token.ts'
import type { KernelOptions } from '../../kernel/environment.ts'
import type { Pack } from '../../kernel/index.ts'
import { createKernel, type Kernel } from '../../kernel/kernel.ts'
import { type Instance, listInstances } from '../instances/index.ts'
import { guardOutbound, OutboundRefused } from '../llm/index.ts'
import { reachable } from './bind.ts'
import { CommandError } from './command-error.ts'
import { homeOf, readDeployment } from './deployment.ts'
import { deploymentPacks } from './deployment-packs.ts'
import type { FlagValues } from './flags.ts'
import { assertHome } from './home-access.ts'
import type { Io } from './io.ts'
import { kernelOptions } from './kernel-options.ts'
import { nearFetch } from './near-fetch.ts'
import { blankEnvironment } from './own-environment.ts'

/** A server and a client of it. */
export interface Reached {
  readonly url: string
  readonly client: Client
  /** Undefined for a server that this process has started for itself. */
  readonly instance: Instance | undefined
}

/** Address of a running server, for clients on this machine. */
export function urlOf({ host, port }: Pick<Instance, 'host' | 'port'>): string {
  return reachable(`http://${host.includes(':') ? `[${host}]` : host}:${port}`)
}

/** A client of a server of the home; the token is read when it is needed, because it may be replaced. */
function clientAt(home: string, url: string): Client {
  return createClient({ url, token: () => readToken(home) ?? '', client_id: 'svc-code-cli', fetch: nearFetch })
}

export function reach(home: string, instance: Instance): Reached {
  const url = urlOf(instance)
  return { url, client: clientAt(home, url), instance }
}

const answers = ({ client }: Reached): Promise<boolean> =>
  unwrap(client.rest.GET('/api/v1/meta', { signal: AbortSignal.timeout(3_000) })).then(
    () => true,
    () => false
  )

/** The oldest running server of the home that answers. */
export async function runningServer(home: string): Promise<Reached | undefined> {
  for (const instance of await listInstances(home)) {
    const server = reach(home, instance)
    if (await answers(server)) return server
  }
  return undefined
}

/** Servers of the home that run and do not answer. */
export async function silentServers(home: string): Promise<Instance[]> {
  const all = await listInstances(home)
  return (await Promise.all(all.map(async one => ((await answers(reach(home, one))) ? [] : [one])))).flat()
}

export function silence(instance: Instance): string {
  const why = 'its process is stopped, or something in it loops, as a pack in the process of the server may'
  return `the server at ${urlOf(instance)} (pid ${instance.pid}) does not answer (${why})`
}

/** As `runningServer`; throws when there is none. */
export async function neededServer(home: string): Promise<Reached> {
  const server = await runningServer(home)
  if (!server) throw new CommandError(`no server runs on ${home}; start one with: svc-code`)
  return server
}

interface OwnServerOptions {
  /** Packs beside those of the deployment. */
  readonly more?: readonly Pack[]
  /** Others see it and may use it. */
  readonly visible?: boolean
  /** It may call hosts; else whoever tries is refused. */
  readonly outbound?: boolean
  /** What a server would say at its terminal. */
  readonly onOperatorLine?: KernelOptions['onOperatorLine']
}

/** Uses the running server of the home; without one, packs of this process that end with `use`. Says what is wrong with the configuration. */
export async function withServer<T>(
  flags: FlagValues,
  io: Io,
  use: (server: Reached) => Promise<T>,
  options: OwnServerOptions = {}
): Promise<T> {
  const home = homeOf(flags, io.env)
  const running = await runningServer(home)
  if (running) return await warned(running, io, use).finally(() => running.client.close())
  return await withKernel(
    flags,
    io.env,
    async kernel => {
      const { url } = kernel.address
      if (options.visible) warnOfFailed(kernel, io)
      const client = clientAt(home, url)
      return await warned({ url, client, instance: undefined }, io, use).finally(() => client.close())
    },
    options
  )
}

/** Names the failed packs, as a start does. Packs that wait are not named: they wait for a failed one, or for one that was left out. */
function warnOfFailed(kernel: Kernel, { err }: Io): void {
  for (const { name, state, meta } of kernel.features()) if (state === 'Failed') err(`warning: pack ${name} failed: ${meta.error ?? ''}\n`)
}

/** Tells what of the configuration the server does not use: it explains answers that would puzzle. */
async function warned<T>(server: Reached, { err }: Io, use: (server: Reached) => Promise<T>): Promise<T> {
  const auth = await unwrap(server.client.rest.GET('/api/v1/auth')).catch(() => undefined) // its pack may be off
  for (const text of auth?.warnings ?? []) err(`warning: ${text}\n`)
  return await use(server)
}

/**
 * Starts the packs of the deployment in this process, on any free port of this machine, for as long as `use` takes. Work that another
 * server left is not taken up: it would be cut off again. Its coming and going is not logged, unless others see it.
 */
export async function withKernel<T>(
  flags: FlagValues,
  env: NodeJS.ProcessEnv,
  use: (kernel: Kernel) => T | Promise<T>,
  { more = [], visible = false, outbound = false, onOperatorLine }: OwnServerOptions = {}
): Promise<T> {
  if (env === process.env) blankEnvironment(env)
  assertHome(homeOf(flags, env))
  const deployment = await readDeployment(flags, env)
  const options = kernelOptions(flags, env, deployment)
  const named = flags['log-level'] !== undefined || Boolean(env.SVC_CODE_LOG_LEVEL)
  const sessions = { ...(options.config?.sessions as object | undefined), take_over: false }
  const open = outbound
    ? undefined
    : guardOutbound(url => {
        throw new OutboundRefused(url, 'this command only looks')
      })
  try {
    const own = (await deploymentPacks(deployment)).filter(pack => visible || pack.name !== 'instances')
    const kernel = await createKernel({
      ...options,
      log: visible || named ? options.log : { level: 'warn' },
      config: { ...options.config, sessions },
      host: '127.0.0.1',
      port: 0,
      required: visible ? (options.required ?? []) : [],
      packs: [...own, ...more],
      onOperatorLine
    })
    try {
      await kernel.start()
      return await use(kernel)
    } finally {
      await kernel.stop()
    }
  } finally {
    open?.()
  }
}
