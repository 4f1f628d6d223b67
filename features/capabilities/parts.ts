/** Installs parts of the built-in capabilities from what the deployment names. */
import { createReadStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../kernel/index.ts'
import { createUpstream } from '../llm/index.ts'
import { downloadTo } from '../plugins/index.ts'
import { command, lastLine, type ProbePorts, pluginIn } from './probes.ts'
import type { Capability, InstallProgress } from './service.ts'
import type { SharedSource } from './sources.ts'
import { type Probe, steps } from './status.ts'

export interface PartPorts extends ProbePorts {
  /** Of this capability, absolute: what the server itself keeps of it. */
  readonly dir: string
  readonly home: string
  readonly userAgent: string
  readonly step_ms: number
  readonly silence_ms: number
}

const installMs = 600_000

interface BuiltIn extends Pick<Capability, 'id' | 'displayName' | 'description' | 'supported' | 'install'> {
  readonly probes: readonly Probe[]
  /** The one of them that looks for the plugin, which is called as the capability is. */
  readonly pluginStep: string
  /** What is not configured, so that nothing can be installed. */
  readonly lacks?: string | undefined
}

/** A plugin, and programs beside it, from what the deployment names. */
export function builtIn(ports: PartPorts, { plugin, program }: SharedSource, { probes, pluginStep, lacks, ...facts }: BuiltIn): Capability {
  const { id } = facts
  const named = plugin !== undefined || program !== undefined
  return {
    ...facts,
    pluginId: id,
    pluginSource: plugin,
    async detect(signal) {
      const found = await steps(probes, ports.step_ms, signal)
      const isThere = found.some(step => step.id === pluginStep && step.state === 'ok')
      return { steps: found, version: isThere ? (await pluginIn(ports, id))?.version : undefined }
    },
    unavailable: () => (named ? lacks : `nothing is configured to install it from ([packs.config.capabilities.${id}])`)
  }
}

export async function installPlugin(ports: PartPorts, source: string, progress: InstallProgress, signal: AbortSignal): Promise<void> {
  progress.step('plugin')
  const plugins = ports.plugins()
  if (!plugins) throw new Error('no pack of this server has plugins (plugins)')
  await plugins.install(source, signal)
}

/** Fetches the file beside its place and gives it to `use`; it is gone afterwards. */
export async function fetched(
  ports: PartPorts,
  program: { readonly url: string; readonly sha256: string },
  progress: InstallProgress,
  signal: AbortSignal,
  use: (file: string) => Promise<void>
): Promise<void> {
  progress.step('download')
  const staging = join(ports.dir, 'staging')
  // Whatever stands there is of an install that died: this one has the lock.
  await rm(staging, { recursive: true, force: true })
  await mkdir(staging, { recursive: true, mode: 0o700 })
  const upstream = createUpstream(process.env, { connect_ms: 10_000, silence_ms: ports.silence_ms })
  try {
    const file = join(staging, 'program')
    const onBytes = (bytes: number, total: number | undefined) => {
      progress.step('download', total === undefined ? undefined : (bytes / total) * 100)
    }
    const integrity = await downloadTo(file, program.url, { upstream, userAgent: ports.userAgent, signal, onBytes })
    if (integrity !== `sha256-${Buffer.from(program.sha256, 'hex').toString('base64')}`) {
      throw new Error('the downloaded file is not the one that the configuration names (sha256)')
    }
    await use(file)
  } finally {
    await upstream.close()
    await rm(staging, { recursive: true, force: true })
  }
}

/** Puts a file in its place as a program, whole or not at all, and on the medium. */
export async function place(file: string, at: string): Promise<void> {
  await replaceFile(at, createReadStream(file), { mode: 0o700 })
}

/** Rejects with the last line of its output unless it exits with 0. */
export async function run(ports: PartPorts, line: string, env: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void> {
  const { code, output } = await command(ports, line, env, signal, installMs)
  if (code !== 0) throw new Error(`the command exited with ${code}: ${lastLine(output)}`)
}
