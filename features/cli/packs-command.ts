/** `svc-code packs`: what the running server says of its packs, or what one would load. Nothing is started or made. */
import { unwrap } from '../../client/index.ts'
import type { Pack } from '../../kernel/index.ts'
import { deploymentConfig } from '../../kernel/lifecycle/context.ts'
import { listInstances } from '../instances/index.ts'
import { factsOf, type PackItem } from '../packs/index.ts'
import { CommandError } from './command-error.ts'
import type { Runner } from './commands.ts'
import { type Deployment, readDeployment } from './deployment.ts'
import { deploymentPacks, deploymentWarnings, kernelServices } from './deployment-packs.ts'
import { configuredWarnings } from './deployment-warnings.ts'
import { json, table } from './io.ts'
import { details, disabledRow, type Row, rowOf, why } from './pack-rows.ts'
import { type Reached, runningServer, silence } from './servers.ts'

/** Exit code 1 when a pack failed, or a name that is no pack's stops every start. */
export const packs: Runner = async ({ flags, words }, { env, out, err }) => {
  const deployment = await readDeployment(flags, env)
  const server = await runningServer(deployment.home)
  const warn = (text: string) => err(`warning: ${text}\n`)
  let starts = true
  const stranger = ({ message }: Error) => {
    starts = false
    warn(`no server can start: ${message}`)
  }
  const rows: Row[] = server ? await rowsOf(server, deployment) : await foreseenRows(deployment, warn, stranger)
  if (!server) {
    const [silent] = await listInstances(deployment.home)
    err(`${silent ? silence(silent) : `no server runs on ${deployment.home}`}: this is what one would load\n`)
  } else {
    const served = rows.map(({ name }) => name)
    for (const text of await configuredWarnings(flags, env, served)) warn(text)
  }
  const [name] = words
  const shown = name === undefined ? rows : rows.filter(row => row.name === name)
  if (name !== undefined && shown.length === 0) throw new CommandError(`no pack '${name}'; svc-code packs lists them`)
  if (flags.json) out(json({ running: server !== undefined, packs: shown }))
  else if (name !== undefined) for (const row of shown) out(details(row))
  else out(table([['pack', 'state', 'version', 'why'], ...rows.map(row => [row.name, row.state, row.version ?? '-', row.why])]))
  return starts && shown.every(row => row.state !== 'Failed') ? 0 : 1
}

/** What a running server says; one without the pack that tells it says less. */
async function rowsOf({ client }: Reached, { disable }: Deployment): Promise<Row[]> {
  const told = await unwrap(client.rest.GET('/api/v1/packs')).catch(() => undefined)
  if (told) return (told.items as PackItem[]).map(rowOf)
  const { features } = await unwrap(client.rest.GET('/api/v1/meta'))
  const active = features.map(feature => {
    const { name, state, meta } = feature
    return { name, state, version: meta.version, why: why(feature as never) }
  })
  return [...active, ...disable.map(disabledRow)]
}

async function foreseenRows(deployment: Deployment, warn: (text: string) => void, stranger: (problem: Error) => void): Promise<Row[]> {
  const loaded = await deploymentPacks(deployment, { warn, stranger })
  for (const text of deploymentWarnings(deployment, loaded)) warn(text)
  return [...foreseen(loaded, deployment), ...deployment.disable.map(disabledRow)]
}

/** What can be told of packs that were imported and not set up: wrong options, and needs that nobody would provide. */
function foreseen(loaded: readonly Pack[], { config }: Deployment): Row[] {
  const rows = new Map<string, Row>()
  const row = (pack: Pack, state: string, reason: string) =>
    rows.set(pack.name, {
      ...factsOf(pack),
      ...{ name: pack.name, state, version: pack.version, why: reason, options: optionsOf(pack, config[pack.name]) }
    })
  const failed = new Set<Pack>()
  for (const pack of loaded) {
    const reason = pack.broken?.message ?? configProblem(pack, config[pack.name])
    if (reason === undefined) continue
    failed.add(pack)
    row(pack, 'Failed', reason)
  }
  const provided = new Set(kernelServices)
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

function optionsOf(pack: Pack, given: unknown): Record<string, unknown> | null {
  return configProblem(pack, given) === undefined ? (deploymentConfig(pack, given) as Record<string, unknown>) : null
}

function configProblem(pack: Pack, given: unknown): string | undefined {
  try {
    deploymentConfig(pack, given)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}
