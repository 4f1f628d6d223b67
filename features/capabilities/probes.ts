/** Looks at this machine: plugins, files, processes, commands. Nothing is changed. */
import { access, constants, readdir, readFile, stat } from 'node:fs/promises'
import { basename, delimiter, join } from 'node:path'
import { isMissing } from '../../kernel/index.ts'
import type { Plugins } from '../plugins/index.ts'
import type { Shell } from '../tools-shell/index.ts'
import type { CapabilityStep } from './contract.ts'

type Look = Pick<CapabilityStep, 'state' | 'detail'>

export interface ProbePorts {
  readonly plugins: () => Plugins | undefined
  readonly shell: () => Shell | undefined
  readonly env: NodeJS.ProcessEnv
  readonly platform: NodeJS.Platform
}

const commandMs = 60_000
/** Processes that are read at a time. */
const atOnce = 64

export async function pluginIn(ports: ProbePorts, id: string) {
  const plugins = ports.plugins()
  if (!plugins) throw new Error('no pack of this server has plugins (plugins)')
  return (await plugins.list()).find(one => one.id === id)
}

/** Installed, switched on, and without errors. */
export async function lookForPlugin(ports: ProbePorts, id: string): Promise<Look> {
  const plugin = await pluginIn(ports, id)
  if (!plugin) return { state: 'missing', detail: `the plugin ${id} is not installed` }
  if (plugin.state !== 'ok') return { state: 'failed', detail: `the plugin ${id} has errors` }
  if (!plugin.enabled) return { state: 'missing', detail: `the plugin ${id} is switched off` }
  return { state: 'ok', ...(plugin.version === undefined ? {} : { detail: plugin.version }) }
}

/** What an older way left must be gone once the plugin is there; without the plugin there is nothing to tell. */
export async function lookForLeftover(ports: ProbePorts, id: string, leftover: () => Promise<string | undefined>): Promise<Look> {
  if (!(await pluginIn(ports, id))) return { state: 'missing', detail: `the plugin ${id} is not installed` }
  const left = await leftover()
  return left === undefined ? { state: 'ok' } : { state: 'failed', detail: left }
}

export async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}

/** The first of these paths where something is. */
export async function firstThere(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) if (await isThere(path)) return path
  return undefined
}

/** The first of these files that may be run, then those of this name in PATH. */
export async function programAt(paths: readonly string[], name: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const inPath = (env.PATH ?? '').split(delimiter).filter(dir => dir !== '')
  for (const path of [...paths, ...inPath.map(dir => join(dir, name))]) {
    const runs = await access(path, constants.X_OK).then(
      async () => (await stat(path)).isFile(),
      () => false // not there, or not for us
    )
    if (runs) return path
  }
  return undefined
}

/** Whether a process runs whose program has this file name. */
export async function lookForProcess(ports: ProbePorts, name: string, signal: AbortSignal): Promise<Look> {
  const names = ports.platform === 'linux' ? linuxPrograms(signal) : listedPrograms(ports, signal)
  for await (const each of names) if (each === name) return { state: 'ok' }
  return { state: 'missing', detail: `no process ${name} runs` }
}

async function* linuxPrograms(signal: AbortSignal): AsyncGenerator<string> {
  const ids = (await readdir('/proc')).filter(entry => /^\d+$/.test(entry))
  for (let at = 0; at < ids.length; at += atOnce) {
    signal.throwIfAborted()
    const lines = await Promise.all(
      ids.slice(at, at + atOnce).map(id => readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => '')) // it has ended
    )
    for (const line of lines) yield basename(line.split('\0')[0] ?? '')
  }
}

async function* listedPrograms(ports: ProbePorts, signal: AbortSignal): AsyncGenerator<string> {
  const windows = ports.platform === 'win32'
  const { code, output } = await command(ports, windows ? 'tasklist //FO CSV //NH' : 'ps -axo comm=', {}, signal)
  if (code !== 0) throw new Error(`processes cannot be listed: ${lastLine(output)}`)
  for (const line of output.split('\n')) yield basename(windows ? (/^"([^"]*)"/.exec(line)?.[1] ?? '') : line.trim())
}

/** Runs a shell line. Rejects when nobody can, or it did not end by itself. */
export async function command(
  ports: Pick<ProbePorts, 'shell'>,
  line: string,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
  limit_ms = commandMs
): Promise<{ readonly code: number; readonly output: string }> {
  const shell = ports.shell()
  if (!shell) throw new Error('no pack of this server runs commands (tools-shell)')
  const { code, stdout, stderr, trouble } = await shell.run({ command: line, cwd: process.cwd(), env, timeout_ms: limit_ms, signal })
  signal.throwIfAborted()
  if (code === undefined) throw new Error(`the command did not end: ${trouble}`)
  return { code, output: stdout + stderr }
}

/** What a command said last. */
export function lastLine(output: string): string {
  return output.trim().split('\n').at(-1) || 'it said nothing'
}
