/** `svc-code serve`: starts the full server, says where it is and how to stop it, and ends gracefully on a signal. */
import { readToken } from '../../kernel/access/token.ts'
import { defaultPort, type KernelOptions } from '../../kernel/environment.ts'
import { createKernel, type Kernel } from '../../kernel/kernel.ts'
import type { LogLevel } from '../../kernel/log/log.ts'
import { listInstances } from '../instances/index.ts'
import { isOfflineEnvironment } from '../llm/index.ts'
import { PackSource } from '../packs/index.ts'
import { banner } from './banner.ts'
import { assertBind } from './bind.ts'
import type { Runner } from './commands.ts'
import { escaped } from './culprit.ts'
import { type Deployment, homeOf, listOf, readDeployment } from './deployment.ts'
import { deploymentConfig, deploymentPacks, deploymentWarnings } from './deployment-packs.ts'
import { type FlagValues, logLevels } from './flags.ts'
import { assertHome } from './home-access.ts'
import { homeWarnings } from './home-warnings.ts'
import { isOfImport } from './import-watch.ts'
import { isOrigin } from './options.ts'
import { blankEnvironment } from './own-environment.ts'
import { packSource } from './pack-source.ts'
import { Terminal } from './terminal.ts'
import { ownCommand, productVersion } from './version.ts'

export const serveCommand: Runner = ({ flags }, { env, out }) => serve(flags, env, out)

/** Called with the started server; answers what ends with it. */
export type Started = (kernel: Kernel) => () => void

/** Runs until the server has stopped; resolves to the exit code. */
export async function serve(flags: FlagValues, env: NodeJS.ProcessEnv, out: (text: string) => void, started?: Started): Promise<number> {
  const warn = (text: string) => out(`warning: ${text}\n`)
  if (!blankEnvironment(env) && process.platform === 'linux')
    warn('commands of the agent can read the environment of this process in /proc; keep keys out of it')
  assertHome(homeOf(flags, env))
  const deployment = await readDeployment(flags, env)
  const options = kernelOptions(flags, env, deployment)
  const bind = { host: options.host ?? '127.0.0.1', insecureNoTls: flags['insecure-no-tls'], password: options.password }
  assertBind(bind).forEach(warn)
  for (const odd of listOf(env.SVC_CODE_CORS_ORIGINS).filter(origin => !isOrigin(origin.replace(/\/$/, ''))))
    warn(`${odd} in SVC_CODE_CORS_ORIGINS is not an origin: give scheme, host and port only, such as https://app.example:8443`)
  const level = env.SVC_CODE_LOG_LEVEL
  if (level && !logLevels.includes(level)) warn(`SVC_CODE_LOG_LEVEL ${level} is unknown: give one of ${logLevels.join(', ')}; info is used`)
  const early = collectFaults()
  const packs = await deploymentPacks(deployment, { warn })
  deploymentWarnings(deployment, packs).forEach(warn)
  const terminal = new Terminal(out)
  const kernel = await createKernel({
    ...options,
    packs,
    services: [[PackSource, packSource(flags, env, deployment, packs)]],
    onOperatorLine: line => terminal.show(line)
  })
  for (const warning of homeWarnings(kernel.home)) {
    kernel.log.warn(warning)
    warn(warning)
  }
  const stop = onSignals(kernel, text => terminal.say(text))
  const faults = onFaults(kernel)
  early.tell(faults)
  try {
    const { url, port } = await kernel.start()
    const meant = options.port ?? defaultPort
    const facts = {
      url,
      token: readToken(kernel.home) ?? '',
      taken: meant !== 0 && port !== meant ? { port: meant, by: await serverAt(kernel.home, meant) } : undefined,
      demo: deployment.demo ?? false,
      offline: options.offline ?? false,
      bypassed: options.dangerousBypassAuth ?? false,
      command: ownCommand(env),
      isTold: (text: string) => terminal.isTold(text)
    }
    const ready = kernel.stopping ? '' : await banner(kernel, facts)
    if (kernel.stopping) await kernel.done
    else {
      out(ready)
      terminal.running()
      await kernel.done.finally(started?.(kernel))
    }
    terminal.say('stopped')
    return faults.fatal() ? 1 : 0
  } finally {
    faults.end()
    stop()
  }
}

/** Which server of this home has a port. */
async function serverAt(home: string, port: number): Promise<number | undefined> {
  return (await listInstances(home)).find(instance => instance.port === port)?.pid
}

const notHandled = 'a rejected promise was not handled'

export function kernelOptions(flags: FlagValues, env: NodeJS.ProcessEnv, deployment: Deployment): Omit<KernelOptions, 'packs'> {
  const { faults } = deployment
  return {
    home: deployment.home,
    product: 'svc-code',
    version: productVersion(),
    config: deploymentConfig(deployment),
    required: deployment.require,
    faultLimit: faults && { count: faults.limit, within_ms: faults.within_s * 1_000 },
    host: flags.host,
    port: flags.port === undefined ? undefined : Number(flags.port),
    log: { level: (flags['log-level'] ?? logLevelOf(env)) as LogLevel },
    password: env.SVC_CODE_PASSWORD || undefined,
    dangerousBypassAuth: flags['dangerous-bypass-auth'] ?? false,
    allowRemoteShutdown: flags['allow-remote-shutdown'] ?? false,
    debugEndpoints: flags['debug-endpoints'] ?? false,
    allowedHosts: [...(flags['allowed-host'] ?? []), ...listOf(env.SVC_CODE_ALLOWED_HOSTS)],
    disableHostCheck: env.SVC_CODE_DISABLE_HOST_CHECK === '1',
    offline: flags.offline ?? isOfflineEnvironment(env),
    corsOrigins: [...(flags['cors-origin'] ?? []), ...listOf(env.SVC_CODE_CORS_ORIGINS)]
  }
}

/** An unknown level in the environment is not worth refusing to start. */
function logLevelOf(env: NodeJS.ProcessEnv): string {
  const level = env.SVC_CODE_LOG_LEVEL ?? ''
  return logLevels.includes(level) ? level : 'info'
}

/** First signal: graceful. Second: at once, but for that of a terminal that is closed, which may come several times, up to the very end. */
function onSignals(kernel: Kernel, say: (text: string) => void): () => void {
  let signals = 0
  let closed = false
  const handle = (name: NodeJS.Signals) => {
    signals++
    closed ||= name === 'SIGHUP'
    if (signals > 1 && name !== 'SIGHUP') process.exit(130)
    if (signals > 1) return
    say('stopping; press Ctrl+C again to force')
    void kernel.stop()
  }
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const name of names) process.on(name, handle)
  return () => {
    for (const name of names) if (!closed || name !== 'SIGHUP') process.off(name, handle)
  }
}

/** What escapes before there is a log, from imports as a rule: told when there is one. */
function collectFaults() {
  const rejected: unknown[] = []
  const thrown: unknown[] = []
  const hearRejected = (err: unknown) => void rejected.push(err)
  const hearThrown = (err: unknown) => void (isOfImport(err) || thrown.push(err))
  process.on('unhandledRejection', hearRejected)
  process.on('uncaughtException', hearThrown)
  return {
    tell(faults: ReturnType<typeof onFaults>) {
      process.off('unhandledRejection', hearRejected)
      process.off('uncaughtException', hearThrown)
      for (const err of rejected) faults.rejected(err)
      for (const err of thrown) faults.thrown(err)
    }
  }
}

/**
 * Faults that escaped from a pack, which is named where the stack tells it. A promise nobody waited for costs nobody else anything. An exception
 * out of a callback that ran through one pack alone takes that pack out; after any other the state is unknown: the server stops in good
 * order, so that turns are settled and journals flushed.
 */
function onFaults(kernel: Kernel) {
  let fatal = false
  const rejected = (err: unknown) => {
    if (escaped(kernel, err, false).pack === undefined) kernel.log.error({ err }, notHandled)
  }
  const thrown = (err: unknown) => {
    if (isOfImport(err)) return
    const { pack, contained } = escaped(kernel, err, true)
    if (contained) return
    kernel.log.fatal({ err, ...(pack === undefined ? {} : { pack }) }, 'an exception was not handled; the server stops')
    const where = pack === undefined ? '' : ` in pack ${pack}`
    if (!fatal) process.stderr.write(`svc-code: stopping after an internal error${where}; the log has it\n`)
    fatal = true
    void kernel.stop()
  }
  process.on('unhandledRejection', rejected)
  process.on('uncaughtException', thrown)
  return {
    fatal: () => fatal,
    rejected,
    thrown,
    end() {
      process.off('unhandledRejection', rejected)
      process.off('uncaughtException', thrown)
    }
  }
}
