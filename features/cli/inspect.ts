/** `svc-code token`, `packs` and `instances`: looks at a home and its running servers. */

import { readToken, rotateToken } from '../../kernel/access/token.ts'
import type { Feature, Pack } from '../../kernel/index.ts'
import { createKernel, type Kernel } from '../../kernel/kernel.ts'
import { type Instance, listInstances } from '../instances/index.ts'
import { guardOutbound, OutboundRefused } from '../llm/index.ts'
import { homeOf, readDeployment } from './deployment.ts'
import type { FlagValues } from './options.ts'
import { deploymentPacks, kernelOptions, reachable, why } from './serve.ts'

export async function token(words: readonly string[], flags: FlagValues, env: NodeJS.ProcessEnv): Promise<string> {
  const home = homeOf(flags, env)
  return `${words[0] === 'rotate' ? await rotateToken(home) : await shownToken(home)}\n`
}

/** The token; a home without one gets it now, as the first start would do. */
async function shownToken(home: string): Promise<string> {
  return readToken(home) ?? (await rotateToken(home))
}

export async function instances(flags: FlagValues, env: NodeJS.ProcessEnv): Promise<string> {
  const home = homeOf(flags, env)
  const running = await listInstances(home)
  if (running.length === 0) return `no server is running on ${home}\n`
  const rows = running.map(one => [
    one.server_id,
    urlOf(one),
    `pid ${one.pid}`,
    `since ${new Date(one.started_at).toISOString()}`,
    one.host_version ?? ''
  ])
  return table(rows)
}

/** Asks the running server of the home; without one, the packs are activated here once, to see what they say. */
export async function packs(flags: FlagValues, env: NodeJS.ProcessEnv): Promise<string> {
  const deployment = await readDeployment(flags, env)
  const features = (await askRunning(deployment.home)) ?? (await tryPacks(flags, env))
  return table([
    ['pack', 'state', 'version', 'why'],
    ...features.map(feature => [feature.name, feature.state, feature.meta.version ?? '-', why(feature)]),
    ...deployment.disable.map(name => [name, 'disabled', '-', 'by --disable or config.toml'])
  ])
}

async function askRunning(home: string): Promise<readonly Feature[] | undefined> {
  const [first] = await listInstances(home)
  if (!first) return undefined
  const headers = { authorization: `Bearer ${readToken(home) ?? ''}` }
  try {
    const answer = await fetch(`${urlOf(first)}/api/v1/meta`, { headers, signal: AbortSignal.timeout(3_000) })
    const envelope = (await answer.json()) as { code: number; data: { features: Feature[] } }
    return envelope.code === 0 ? envelope.data.features : undefined
  } catch {
    return undefined // it just went away, or its meta pack is off: look for ourselves
  }
}

async function tryPacks(flags: FlagValues, env: NodeJS.ProcessEnv): Promise<readonly Feature[]> {
  return await withKernel(flags, env, [], kernel => kernel.features())
}

/** Starts the packs of the deployment, and some more, for one look, and calls nobody meanwhile. */
export async function withKernel<T>(
  flags: FlagValues,
  env: NodeJS.ProcessEnv,
  more: readonly Pack[],
  look: (kernel: Kernel) => T | Promise<T>
): Promise<T> {
  const deployment = await readDeployment(flags, env)
  const options = { ...kernelOptions(flags, env, deployment), host: '127.0.0.1', port: 0, required: [] }
  const open = guardOutbound(url => {
    throw new OutboundRefused(url, 'this command only looks')
  })
  try {
    const own = (await deploymentPacks(deployment)).filter(pack => pack.name !== 'instances') // a look is no running server
    const kernel = await createKernel({ ...options, packs: [...own, ...more] })
    await kernel.start()
    try {
      return await look(kernel)
    } finally {
      await kernel.stop()
    }
  } finally {
    open()
  }
}

function urlOf(instance: Instance): string {
  const { host, port } = instance
  return reachable(`http://${host.includes(':') ? `[${host}]` : host}:${port}`)
}

export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => (row[column] ?? '').length)))
  return rows
    .map(
      row =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`
    )
    .join('')
}
