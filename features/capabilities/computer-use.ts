/** Computer use: an app that sees and controls the screen, and a plugin that tells agents how to use it. macOS, and Windows on x64. */
import { join } from 'node:path'
import { homeOfUser } from '../../kernel/index.ts'
import { serverFileText, serversIn } from '../mcp/index.ts'
import { builtIn, fetched, installPlugin, type PartPorts, run } from './parts.ts'
import { command, firstThere, lookForLeftover, lookForPlugin, lookForProcess } from './probes.ts'
import type { Capability } from './service.ts'
import type { ComputerUseSource } from './sources.ts'
import type { Probe } from './status.ts'

const id = 'svc-cu'

export interface ComputerUsePorts extends PartPorts {
  readonly source: ComputerUseSource
  readonly arch: string
}

export function computerUse(ports: ComputerUsePorts): Capability {
  const { source, env, platform, arch, home } = ports
  const windows = platform === 'win32'
  const user = env.HOME ?? homeOfUser()
  const apps =
    source.app !== undefined
      ? [source.app]
      : windows
        ? [join(env.LOCALAPPDATA ?? join(user, 'AppData', 'Local'), 'Programs', id, `${id}.exe`)]
        : ['/Applications', join(user, 'Applications')].map(dir => join(dir, `${id}.app`))

  const permitted = async (signal: AbortSignal) => {
    if (source.permissions === undefined) return { state: 'missing' as const, detail: 'no command is configured that asks for them' }
    const { code } = await command(ports, source.permissions, {}, signal, ports.step_ms)
    return code === 0 ? { state: 'ok' as const } : { state: 'missing' as const, detail: 'grant them in the settings of the system' }
  }
  const probes: readonly Probe[] = [
    { id: 'plugin', look: () => lookForPlugin(ports, id) },
    { id: 'legacy-mcp', look: () => lookForLeftover(ports, id, () => legacyServer(join(home, 'mcp.json'))) },
    ...(windows ? [{ id: 'runtime', look: () => fileOf([join(env.SystemRoot ?? 'C:\\Windows', 'System32', 'vcruntime140.dll')]) }] : []),
    { id: 'app', look: () => fileOf(apps) },
    { id: 'service', look: signal => lookForProcess(ports, windows ? `${id}.exe` : id, signal) },
    { id: 'permissions', look: permitted }
  ]

  return builtIn(ports, source, {
    id,
    displayName: 'Computer use',
    description: 'Lets agents see the screen and use mouse and keyboard',
    supported: platform === 'darwin' || (windows && arch === 'x64'),
    probes,
    pluginStep: 'plugin',
    lacks: source.program && source.install === undefined ? 'no command is configured that installs the downloaded app' : undefined,
    async install(progress, signal) {
      const left: string[] = []
      if (source.plugin !== undefined) await installPlugin(ports, source.plugin, progress, signal)
      progress.step('mcp-config')
      const legacy = await legacyServer(join(home, 'mcp.json'))
      if (legacy !== undefined) left.push(legacy)
      const { install } = source
      if (source.program && install !== undefined) {
        await fetched(ports, source.program, progress, signal, async file => {
          progress.step('app')
          await run(ports, install, { SVC_CAPABILITY_FILE: file }, signal)
        })
      }
      if (source.start !== undefined) {
        progress.step('service')
        await run(ports, source.start, { SVC_CAPABILITY_FILE: (await firstThere(apps)) ?? '' }, signal)
      }
      progress.step('permissions')
      const { state, detail } = await permitted(signal)
      if (state !== 'ok') left.push(`permissions: ${detail}`)
      return left.length === 0 ? undefined : left.join('; ')
    }
  })
}

async function fileOf(paths: readonly string[]) {
  const found = await firstThere(paths)
  return found === undefined
    ? { state: 'missing' as const, detail: `not at ${paths.join(' or ')}` }
    : { state: 'ok' as const, detail: found }
}

/** The server of this name that was written by hand before there was a plugin; the file is the user's, and stays as it is. */
async function legacyServer(file: string): Promise<string | undefined> {
  return (await namesIn(file)).includes(id) ? `the server ${id} in ${file} stands beside that of the plugin; remove it` : undefined
}

async function namesIn(file: string): Promise<string[]> {
  try {
    return serversIn(await serverFileText(file)).map(([name]) => name)
  } catch (error) {
    throw new Error(`${file} cannot be understood: ${(error as Error).message}`)
  }
}
