/** `svc-code doctor`: every check, or with `--network` the hosts that packs may call. */
import { existsSync } from 'node:fs'
import { AppError, definePack } from '../../kernel/index.ts'
import type { Kernel } from '../../kernel/kernel.ts'
import { Llm, Outbound, type OutboundReport } from '../llm/index.ts'
import { Mcp } from '../mcp/index.ts'
import { Providers, readAuth } from '../providers/index.ts'
import type { Runner } from './commands.ts'
import { homeOf } from './deployment.ts'
import { type Check, failed, fileCheck, homeChecks, ok, portChecks, warning } from './doctor-checks.ts'
import { json, table } from './io.ts'
import { idleLines, why } from './pack-rows.ts'
import { withKernel } from './servers.ts'

/** How long one provider may take, ms. */
const probeMs = 10_000

interface Seen {
  llm: () => Llm | undefined
  mcp: () => Mcp | undefined
  outbound: () => Outbound | undefined
  providers: () => Providers | undefined
}

export const doctor: Runner = async ({ flags }, { env, out }) => {
  const seen: Seen = { llm: () => undefined, mcp: () => undefined, outbound: () => undefined, providers: () => undefined }
  const more = [reader(seen)]
  if (flags.network) {
    const report = await withKernel(flags, env, () => seen.outbound()?.report(), { more })
    out(
      report ? (flags.json ? json(shownReport(report)) : networkText(report)) : 'the llm pack is not active: nobody keeps a list of hosts\n'
    )
    return 0
  }
  const home = homeOf(flags, env)
  const checks = await homeChecks(home)
  if (checks.every(({ state }) => state !== 'failed')) checks.push(...(await portChecks(home)), await fileCheck(flags, env, home))
  if (existsSync(home) && checks.every(({ state }) => state !== 'failed')) {
    const remarks: Check[] = []
    const onOperatorLine = (line: { readonly level: string; readonly text: string }) => {
      if (line.level !== 'info') remarks.push(warning('configuration', line.text))
    }
    const looked = await withKernel(flags, env, kernel => looks(kernel, seen), { more, outbound: true, onOperatorLine }).catch(
      (error: unknown) => [failed('start', (error as Error).message)]
    )
    checks.push(...remarks, ...looked)
  }
  out(flags.json ? json({ ok: checks.every(({ state }) => state !== 'failed'), checks }) : text(checks))
  return checks.some(({ state }) => state === 'failed') ? 1 : 0
}

function text(checks: readonly Check[]): string {
  const bad = checks.filter(({ state }) => state === 'failed').length
  const odd = checks.filter(({ state }) => state === 'warning').length
  const verdict = bad > 0 ? `${bad} failed` : odd > 0 ? `nothing failed, ${odd} to look at` : 'all is well'
  return `${table(checks.map(({ state, subject, text: said }) => [state, subject, said]))}\n${verdict}\n`
}

/** Gets at services of the packs. */
function reader(seen: Seen) {
  return definePack({
    name: 'doctor',
    optional: { llm: Llm, mcp: Mcp, outbound: Outbound, providers: Providers },
    setup: (_ctx, services) => {
      seen.llm = services.llm
      seen.mcp = services.mcp
      seen.outbound = services.outbound
      seen.providers = services.providers
    }
  })
}

/** What the started packs tell. */
async function looks(kernel: Kernel, seen: Seen): Promise<Check[]> {
  return [
    ...packChecks(kernel),
    ...(await modelChecks(kernel, seen.llm())),
    ...(await providerChecks(seen.providers())),
    ...(await serverChecks(seen.mcp())),
    ...(await networkCheck(seen))
  ]
}

function packChecks(kernel: Kernel): Check[] {
  const features = kernel.features().filter(({ name }) => name !== 'doctor')
  const active = features.filter(({ state }) => state === 'Active')
  const idle = features.filter(({ state }) => state !== 'Active')
  return [
    ok('packs', `${active.length} active`),
    ...active.flatMap(feature => (feature.meta.faults ? [warning('packs', `${feature.name} is Active: ${why(feature)}`)] : [])),
    ...idleLines(idle, kernel.packs()).map(line => failed('packs', line))
  ]
}

async function modelChecks(kernel: Kernel, llm: Llm | undefined): Promise<Check[]> {
  if (!kernel.routeAt(readAuth.method, readAuth.path)) return []
  const { code, data } = await kernel.inject(readAuth)
  if (code !== 0 || !data) return []
  const { default_model, providers_count, ready, warnings = [] } = data
  const problem = default_model === null || providers_count === 0 ? undefined : unusable(default_model, llm)
  const remarks = warnings.map(said => warning('model', said))
  if (problem !== undefined) {
    const remedy = 'svc-code models use <alias> chooses another one, svc-code login stores a key'
    return [failed('model', `the default model ${default_model} cannot be used: ${problem}; ${remedy}`)]
  }
  if (ready) return [ok('model', `the default model is ${default_model}`), ...remarks]
  return [warning('model', 'none is ready: svc-code login stores a key, svc-code models lists what is configured'), ...remarks]
}

/** Why a prompt to the model would be refused. */
function unusable(alias: string, llm: Llm | undefined): string | undefined {
  try {
    llm?.resolve(alias)
    return undefined
  } catch (error) {
    if (!AppError.is(error)) throw error
    return error.message
  }
}

/** One request each, side by side. */
async function providerChecks(providers: Providers | undefined): Promise<Check[]> {
  if (!providers) return []
  return await Promise.all(
    providers.ids().map(async id => {
      const subject = `provider ${id}`
      const probed = await providers.probe(id, AbortSignal.timeout(probeMs)).catch((error: unknown) => ({
        ok: false as const,
        problem: (error as Error).name === 'TimeoutError' ? `no answer within ${probeMs / 1000} s` : (error as Error).message,
        refused: false,
        offline: false
      }))
      if (probed.ok) return ok(subject, `answers, and lists ${probed.models} models`)
      if (probed.offline) return warning(subject, `was not asked: ${probed.problem}`)
      // A server without a list of models may do well otherwise.
      if (/^answered HTTP 40[045]$/.test(probed.problem)) return warning(subject, `${probed.problem} when asked for its models`)
      return failed(subject, probed.problem)
    })
  )
}

/** What is configured for every directory; no server is started. */
async function serverChecks(mcp: Mcp | undefined): Promise<Check[]> {
  try {
    const entries = (await mcp?.entries()) ?? []
    const odd = entries.flatMap(({ name, problem, origin }) =>
      problem === undefined ? [] : [failed('mcp', `the server ${name} cannot be used: ${problem} (${origin})`)]
    )
    return entries.length > odd.length ? [ok('mcp', count(entries.length - odd.length)), ...odd] : odd
  } catch (error) {
    if (!AppError.is(error)) throw error
    return [failed('mcp', error.message)]
  }
}

const count = (servers: number) => (servers === 1 ? 'a server is configured' : `${servers} servers are configured`)

async function networkCheck({ outbound }: Seen): Promise<Check[]> {
  const report = await outbound()?.report()
  if (!report) return []
  if (report.offline !== undefined) return [ok('network', report.offline)]
  return [ok('network', `packs may call ${report.hosts.length} hosts: svc-code doctor --network lists them`)]
}

function shownReport({ offline, hosts }: OutboundReport): unknown {
  return { offline: offline ?? null, hosts: hosts.map(({ url, ...host }) => ({ ...host, host: hostOf(url) })) }
}

function networkText({ offline, hosts }: OutboundReport): string {
  const state = (refused: boolean) => (offline === undefined ? [] : [refused ? 'refused' : 'allowed'])
  const rows = hosts.map(host => [host.pack, hostOf(host.url), ...state(host.refused), host.why, host.when])
  const head = ['pack', 'host', ...(offline === undefined ? [] : ['offline']), 'why', 'when']
  const verdict =
    offline ?? 'the server is not offline: all of these may be called (--offline, SVC_CODE_OFFLINE=1 or offline = true in config.toml)'
  return `${table([head, ...rows])}\n${verdict}\n`
}

/** The origin: paths, queries and user names may be secrets. */
function hostOf(url: string | undefined): string {
  if (url === undefined) return '(as named)'
  return URL.canParse(url) ? new URL(url).origin : '(not a URL)'
}
