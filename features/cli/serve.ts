/** `svc-code serve`: starts the full server, says where it is and how to stop it, and ends gracefully on a signal. */

import { readToken } from '../../kernel/access/token.ts'
import type { KernelOptions } from '../../kernel/environment.ts'
import { homeWarnings } from '../../kernel/home.ts'
import type { Feature, Pack } from '../../kernel/index.ts'
import { createKernel, type Kernel } from '../../kernel/kernel.ts'
import type { LogLevel } from '../../kernel/log/log.ts'
import { defaultConfig, defaultPacks, loadDefaultPack, loadDefaultPacks } from '../default-packs.ts'
import { isOfflineEnvironment } from '../llm/index.ts'
import { assertBind } from './bind.ts'
import { type Deployment, listOf, readDeployment } from './deployment.ts'
import { checkPackNames, type FlagValues, logLevels } from './options.ts'
import { blankEnvironment } from './own-environment.ts'
import { productVersion } from './version.ts'

/** Runs until the server has stopped; resolves to the exit code. */
export async function serve(flags: FlagValues, env: NodeJS.ProcessEnv, out: (text: string) => void): Promise<number> {
  if (!blankEnvironment(env) && process.platform === 'linux')
    out('warning: commands of the agent can read the environment of this process in /proc; keep keys out of it\n')
  const deployment = await readDeployment(flags, env)
  const options = kernelOptions(flags, env, deployment)
  for (const warning of assertBind({
    host: options.host ?? '127.0.0.1',
    insecureNoTls: flags['insecure-no-tls'] ?? false,
    password: options.password
  })) {
    out(`warning: ${warning}\n`)
  }
  const forgotten: unknown[] = []
  const collect = (reason: unknown) => forgotten.push(reason)
  process.on('unhandledRejection', collect) // of an import: there is no log yet
  const packs = await deploymentPacks(deployment)
  for (const name of Object.keys(deployment.config)) {
    const known = packs.some(pack => pack.name === name) || deployment.disable.includes(name)
    if (!known) out(`warning: [packs.config.${name}] in config.toml is for a pack that is not loaded\n`)
  }
  const kernel = await createKernel({ ...options, packs })
  for (const warning of homeWarnings(kernel.home)) out(`warning: ${warning}\n`)
  const stop = onSignals(kernel, out)
  const faults = onFaults(kernel)
  process.off('unhandledRejection', collect)
  for (const err of forgotten) kernel.log.error({ err }, notHandled)
  try {
    const { url } = await kernel.start()
    out(banner(url, kernel, readToken(kernel.home) ?? '', options))
    await kernel.done
    return faults.fatal() ? 1 : 0
  } finally {
    faults.end()
    stop()
  }
}

const notHandled = 'a rejected promise was not handled'

/**
 * The packs of a deployment in activation order for ties. What cannot be imported, and what has the name of another pack, is among them
 * as a pack that fails with the reason. `importMs`: time limit of an import. Throws when a name in `disable` or `require` is nobody's.
 */
export async function deploymentPacks(deployment: Deployment, importMs?: number): Promise<Pack[]> {
  const packs = await loadDefaultPacks(deployment.disable, productVersion())
  const failed: string[] = []
  if (deployment.load.length > 0 || Object.keys(deployment.replace).length > 0) {
    const { loadPacks } = await import('./load-pack.ts')
    const loaded = await loadPacks(deployment.load, Object.keys(defaultPacks), importMs)
    failed.push(...loaded.failed)
    const { checkReplacements } = await import('./replacements.ts')
    const defaults = Object.keys(defaultPacks).map(name => () => loadDefaultPack(name))
    packs.push(...(await checkReplacements(loaded.packs, deployment.replace, defaults)))
  }
  const known = [...new Set([...Object.keys(defaultPacks), ...packs.map(pack => pack.name)])]
  if (failed.length === 0) checkPackNames('disable', deployment.disable, known)
  const absent = failed.length > 0 && deployment.require.find(name => !known.includes(name))
  if (absent) throw new Error(`required pack '${absent}' is not there; these could not be loaded: ${failed.join('; ')}`)
  checkPackNames('require', deployment.require, known)
  return packs.filter(pack => !deployment.disable.includes(pack.name))
}

export function kernelOptions(flags: FlagValues, env: NodeJS.ProcessEnv, deployment: Deployment): Omit<KernelOptions, 'packs'> {
  return {
    home: deployment.home,
    product: 'svc-code',
    version: productVersion(),
    config: withDefaults(deployment.config),
    required: deployment.require,
    ...(flags.host === undefined ? {} : { host: flags.host }),
    ...(flags.port === undefined ? {} : { port: Number(flags.port) }),
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

/** Options of the deployment over those of the full server. */
function withDefaults(config: Deployment['config']): Deployment['config'] {
  const merged: Record<string, unknown> = { ...defaultConfig, ...config }
  for (const [name, options] of Object.entries(defaultConfig)) {
    const own = config[name]
    if (typeof own === 'object' && own !== null) merged[name] = { ...options, ...own }
  }
  return merged
}

/** An unknown level in the environment is not worth refusing to start. */
function logLevelOf(env: NodeJS.ProcessEnv): string {
  const level = env.SVC_CODE_LOG_LEVEL ?? ''
  return logLevels.includes(level) ? level : 'info'
}

/** First signal: graceful. Second: at once. */
function onSignals(kernel: Kernel, out: (text: string) => void): () => void {
  let signals = 0
  const handle = () => {
    signals++
    if (signals > 1) process.exit(130)
    out('stopping; press Ctrl+C again to force\n')
    void kernel.stop()
  }
  const names = ['SIGINT', 'SIGTERM'] as const
  for (const name of names) process.on(name, handle)
  return () => {
    for (const name of names) process.off(name, handle)
  }
}

/**
 * Faults that escaped from a pack. A promise nobody waited for is logged and costs nobody else anything; after an exception out of a
 * callback the state is unknown: the server stops in good order, so that turns are settled and journals flushed.
 */
function onFaults(kernel: Kernel): { fatal(): boolean; end(): void } {
  let fatal = false
  const rejected = (err: unknown) => kernel.log.error({ err }, notHandled)
  const thrown = (err: unknown) => {
    kernel.log.fatal({ err }, 'an exception was not handled; the server stops')
    if (!fatal) process.stderr.write('svc-code: stopping after an internal error; the log has it\n')
    fatal = true
    void kernel.stop()
  }
  process.on('unhandledRejection', rejected)
  process.on('uncaughtException', thrown)
  return {
    fatal: () => fatal,
    end() {
      process.off('unhandledRejection', rejected)
      process.off('uncaughtException', thrown)
    }
  }
}

function banner(url: string, kernel: Kernel, token: string, options: Pick<KernelOptions, 'dangerousBypassAuth' | 'offline'>): string {
  const features = kernel.features()
  const odd = features.filter(feature => feature.state !== 'Active')
  const stoppable = kernel.inspect().routes.includes('POST /api/v1/shutdown')
  const lines = [
    `svc-code ${productVersion()} is listening on ${url}`,
    '',
    `  open    ${reachable(url)}/#token=${token}`,
    `  token   ${token}`,
    `  home    ${kernel.home}`,
    `  packs   ${features.length - odd.length} active${odd.length > 0 ? `, ${odd.length} not:` : ''}`,
    ...odd.map(feature => `          ${feature.name} is ${feature.state}: ${why(feature)}`),
    ...(options.offline ? ['  network offline: only configured providers on this machine are called'] : []),
    `  stop    Ctrl+C${stoppable ? `, or POST ${reachable(url)}/api/v1/shutdown` : ''}`,
    ...(options.dangerousBypassAuth ? ['', '  warning: authentication is off (--dangerous-bypass-auth)'] : []),
    ''
  ]
  return `${lines.join('\n')}\n`
}

/** A URL that a client on this machine can open: a server on all addresses has no address of its own. */
export function reachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}

/** Why a pack is not active, or what of an active one went wrong, in a few words. */
export function why({ meta: { error, waiting_for, faults } }: Feature): string {
  if (error !== undefined) return error
  if (waiting_for) return `waits for ${waiting_for.join(', ')}`
  if (faults) return `${faults.count} ${faults.count === 1 ? 'fault' : 'faults'}, last: ${faults.last}`
  return ''
}
