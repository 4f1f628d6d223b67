/** What the kernel is started with: by options of the command line, the environment and `[packs]`. */
import type { KernelOptions } from '../../kernel/environment.ts'
import type { LogLevel } from '../../kernel/log/log.ts'
import { isOfflineEnvironment } from '../llm/index.ts'
import { type Deployment, listOf } from './deployment.ts'
import { packOptions } from './deployment-packs.ts'
import { type FlagValues, logLevels } from './flags.ts'
import { productVersion } from './version.ts'

export function kernelOptions(flags: FlagValues, env: NodeJS.ProcessEnv, deployment: Deployment): Omit<KernelOptions, 'packs'> {
  const { faults } = deployment
  return {
    home: deployment.home,
    product: 'svc-code',
    version: productVersion(),
    config: packOptions(deployment),
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
