/** `svc-code serve`: starts the full server, says where it is and how to stop it, and ends gracefully on a signal. */
import { readToken } from '../../kernel/access/token.ts'
import { defaultPort } from '../../kernel/environment.ts'
import { createKernel, type Kernel } from '../../kernel/kernel.ts'
import { listInstances } from '../instances/index.ts'
import { PackSource } from '../packs/index.ts'
import { banner } from './banner.ts'
import { assertBind } from './bind.ts'
import type { Runner } from './commands.ts'
import { homeOf, listOf, readDeployment } from './deployment.ts'
import { deploymentPacks, deploymentWarnings } from './deployment-packs.ts'
import { collectFaults, onFaults } from './faults.ts'
import { type FlagValues, logLevels } from './flags.ts'
import { assertHome } from './home-access.ts'
import { homeWarnings } from './home-warnings.ts'
import { kernelOptions } from './kernel-options.ts'
import { isOrigin } from './options.ts'
import { blankEnvironment } from './own-environment.ts'
import { packSource } from './pack-source.ts'
import { Terminal } from './terminal.ts'
import { ownCommand } from './version.ts'

export const serveCommand: Runner = ({ flags }, { env, out }) => serve(flags, env, out)

/** Runs until the server has stopped; resolves to the exit code. `started` gets the started server, and returns what is called at its end. */
export async function serve(
  flags: FlagValues,
  env: NodeJS.ProcessEnv,
  out: (text: string) => void,
  started?: (kernel: Kernel) => () => void
): Promise<number> {
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
