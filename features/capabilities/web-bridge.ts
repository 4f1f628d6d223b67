/** The browser bridge: a daemon, a plugin with the skill, and an extension of the browser. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { homeOfUser } from '../../kernel/index.ts'
import { builtIn, fetched, installPlugin, type PartPorts, place, run } from './parts.ts'
import { firstThere, isThere, lookForLeftover, lookForPlugin, lookForProcess, programAt } from './probes.ts'
import type { Capability } from './service.ts'
import type { WebBridgeSource } from './sources.ts'
import type { Probe } from './status.ts'

const id = 'svc-webbridge'

export interface WebBridgePorts extends PartPorts {
  readonly source: WebBridgeSource
}

export function webBridge(ports: WebBridgePorts): Capability {
  const { source, env, platform, home, dir } = ports
  const file = platform === 'win32' ? `${id}.exe` : id
  const user = env.HOME ?? homeOfUser()
  const binary = () => programAt([join(dir, file)], file, env)

  const probes: readonly Probe[] = [
    {
      id: 'daemon-binary',
      async look() {
        const path = await binary()
        return path === undefined ? { state: 'missing', detail: `there is no program ${file}` } : { state: 'ok', detail: path }
      }
    },
    { id: 'daemon', look: signal => lookForProcess(ports, file, signal) },
    { id: 'skill', look: () => lookForPlugin(ports, id) },
    {
      id: 'standalone-skill-migration',
      look: () =>
        lookForLeftover(ports, id, async () => {
          const left = await firstThere([home, join(user, '.agents')].map(root => join(root, 'skills', id)))
          return left === undefined ? undefined : `${left} stands beside the skill of the plugin; remove it`
        })
    },
    { id: 'extension', optional: true, look: () => extension(source.extensions ?? [], browserDirs(platform, user, env)) }
  ]

  return builtIn(ports, source, {
    id,
    displayName: 'Browser bridge',
    description: 'Lets agents see and use the pages of your browser',
    supported: true,
    probes,
    pluginStep: 'skill',
    async install(progress, signal) {
      if (source.plugin !== undefined) await installPlugin(ports, source.plugin, progress, signal)
      if (source.program) await fetched(ports, source.program, progress, signal, from => place(from, join(dir, file)))
      if (source.start !== undefined) {
        progress.step('service')
        await run(ports, source.start, { SVC_CAPABILITY_FILE: (await binary()) ?? '' }, signal)
      }
      return undefined
    }
  })
}

/** Where browsers keep profiles with their extensions. */
function browserDirs(platform: NodeJS.Platform, user: string, env: NodeJS.ProcessEnv): string[] {
  if (platform === 'darwin') {
    const support = join(user, 'Library', 'Application Support')
    return ['Google/Chrome', 'Chromium', 'Microsoft Edge', 'BraveSoftware/Brave-Browser'].map(name => join(support, name))
  }
  if (platform === 'win32') {
    const local = env.LOCALAPPDATA ?? join(user, 'AppData', 'Local')
    return ['Google/Chrome', 'Chromium', 'Microsoft/Edge', 'BraveSoftware/Brave-Browser'].map(name => join(local, name, 'User Data'))
  }
  const config = env.XDG_CONFIG_HOME ?? join(user, '.config')
  return ['google-chrome', 'chromium', 'microsoft-edge', 'BraveSoftware/Brave-Browser'].map(name => join(config, name))
}

/** Looks into every profile of every browser. */
async function extension(ids: readonly string[], browsers: readonly string[]) {
  if (ids.length === 0) return { state: 'missing' as const, detail: 'no extension is configured to look for' }
  for (const browser of browsers) {
    const profiles: string[] = await readdir(browser).catch(() => []) // not installed
    for (const profile of profiles.filter(name => name === 'Default' || name.startsWith('Profile '))) {
      for (const each of ids) if (await isThere(join(browser, profile, 'Extensions', each))) return { state: 'ok' as const }
    }
  }
  return { state: 'missing' as const, detail: 'the extension is in no browser' }
}
