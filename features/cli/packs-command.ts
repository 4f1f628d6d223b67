/** `svc-code packs`: what the running server says of its packs, or what one would load. Nothing is started or made. */
import { unwrap } from '../../client/index.ts'
import { KernelInfo, type Pack } from '../../kernel/index.ts'
import { deploymentConfig } from '../../kernel/lifecycle/context.ts'
import { why } from './banner.ts'
import type { Runner } from './commands.ts'
import { type Deployment, readDeployment } from './deployment.ts'
import { json, table } from './io.ts'
import { importFailure } from './load-pack.ts'
import { deploymentPacks } from './serve.ts'
import { runningServer } from './servers.ts'

interface Row {
  readonly name: string
  readonly state: string
  readonly version?: string | undefined
  readonly why: string
}

export const packs: Runner = async ({ flags }, { env, out, err }) => {
  const deployment = await readDeployment(flags, env)
  const server = await runningServer(deployment.home)
  const running = server && (await unwrap(server.client.rest.GET('/api/v1/meta'))).features.map(feature => rowOf(feature as never))
  if (!running) err(`no server runs on ${deployment.home}: this is what one would load\n`)
  const disabled = deployment.disable.map(name => ({ name, state: 'disabled', why: 'by --disable or config.toml' }))
  const rows: Row[] = [...(running ?? foreseen(await deploymentPacks(deployment), deployment)), ...disabled]
  if (flags.json) out(json({ running: running !== undefined, packs: rows }))
  else out(table([['pack', 'state', 'version', 'why'], ...rows.map(row => [row.name, row.state, row.version ?? '-', row.why])]))
  return 0
}

function rowOf(feature: Parameters<typeof why>[0]): Row {
  const { name, state, meta } = feature
  return { name, state, version: meta.version, why: why(feature) }
}

/** What can be told of packs that were imported and not set up: wrong options, and needs that nobody would provide. */
function foreseen(loaded: readonly Pack[], { config }: Deployment): Row[] {
  const rows = new Map<string, Row>()
  const row = (pack: Pack, state: string, reason: string) =>
    rows.set(pack.name, { name: pack.name, state, version: pack.version, why: reason })
  const failed = new Set<Pack>()
  for (const pack of loaded) {
    const reason = importFailure(pack) ?? configProblem(pack, config[pack.name])
    if (reason === undefined) continue
    failed.add(pack)
    row(pack, 'Failed', reason)
  }
  const provided = new Set([KernelInfo.id])
  let waiting = loaded.filter(pack => !failed.has(pack))
  for (let before = -1; waiting.length !== before; ) {
    before = waiting.length
    const ready = waiting.filter(pack => missing(pack, provided).length === 0)
    for (const pack of ready) for (const { id } of pack.provides) provided.add(id)
    for (const pack of ready) row(pack, 'not started', '')
    waiting = waiting.filter(pack => !ready.includes(pack))
  }
  for (const pack of waiting) row(pack, 'Pending', `waits for ${missing(pack, provided).join(', ')}`)
  return loaded.flatMap(pack => rows.get(pack.name) ?? [])
}

function missing(pack: Pack, provided: ReadonlySet<string>): string[] {
  return Object.values(pack.needs).flatMap(({ id }) => (provided.has(id) ? [] : [id]))
}

function configProblem(pack: Pack, given: unknown): string | undefined {
  try {
    deploymentConfig(pack, given)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}
