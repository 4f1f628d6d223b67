/** `svc-code doctor --network`: every host that a pack may call, why, and what the offline switch says to it. */
import { definePack } from '../../kernel/index.ts'
import { Outbound, type OutboundReport } from '../llm/index.ts'
import type { Runner } from './commands.ts'
import type { FlagValues } from './flags.ts'
import { table } from './io.ts'
import { withKernel } from './servers.ts'

export async function network(flags: FlagValues, env: NodeJS.ProcessEnv): Promise<string> {
  let outbound: () => Outbound | undefined = () => undefined
  const reader = definePack({
    name: 'doctor',
    optional: { outbound: Outbound },
    setup: (_ctx, services) => {
      outbound = services.outbound
    }
  })
  const report = await withKernel(flags, env, () => outbound()?.report(), { more: [reader] })
  return report ? shown(report) : 'the llm pack is not active: nobody keeps a list of hosts\n'
}

function shown({ offline, hosts }: OutboundReport): string {
  const state = (refused: boolean) => (offline === undefined ? [] : [refused ? 'refused' : 'allowed'])
  const rows = hosts.map(({ pack, url, why, when, refused }) => [pack, hostOf(url), ...state(refused), why, when])
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

export const doctor: Runner = async ({ flags }, { env, out }) => {
  out(await network(flags, env))
  return 0
}
