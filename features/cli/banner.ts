/** What the start prints: where the server is, whether a model is ready and how to get one, the token (once), and how to stop. */
import { join } from 'node:path'
import { shellWord } from '../../kernel/index.ts'
import type { Kernel } from '../../kernel/kernel.ts'
import { readAuth } from '../providers/index.ts'
import { reachable } from './bind.ts'
import { demoModel } from './deployment.ts'
import { idleLines } from './pack-rows.ts'
import { productVersion } from './version.ts'

interface BannerFacts {
  readonly url: string
  readonly token: string
  /** The port that was meant and is taken, and the process that has it if that is a server of this home. */
  readonly taken?: { readonly port: number; readonly by: number | undefined } | undefined
  readonly demo: boolean
  readonly offline: boolean
  readonly bypassed: boolean
  /** How this command line is called here. */
  readonly command: string
  /** A line above says so already. */
  readonly isTold: (text: string) => boolean
}

/** The lines in front of which the server is ready; `stop` is the last of them. */
export async function banner(kernel: Kernel, facts: BannerFacts): Promise<string> {
  const { url, token, taken, offline, bypassed } = facts
  const near = reachable(url)
  const features = kernel.features()
  const demo = facts.demo && features.some(({ name, state }) => name === 'demo-model' && state === 'Active')
  const idle = features.filter(feature => feature.state !== 'Active')
  const page = kernel.routeAt('GET', '/')
  const lines = [
    `svc-code ${productVersion()} is listening on ${url}`,
    ...(taken ? [`  port    ${taken.port} is taken${ownerOf(taken)}; this is the next free one`] : []),
    '',
    ...(page && !page.fallback ? [`  open    ${near}/#token=${token}`] : [`  token   ${token}`]),
    ...(await modelLines(kernel, { ...facts, demo })),
    `  home    ${kernel.home}`,
    `  packs   ${features.length - idle.length} active${idle.length > 0 ? `, ${idle.length} not:` : ''}`,
    ...idleLines(idle, kernel.packs()).map(line => `          ${line}`),
    ...(offline ? ['  network offline: only configured providers on this machine are called'] : []),
    ...(demo ? ['', ...tryLines(kernel, near), ''] : []),
    `  stop    Ctrl+C${kernel.routeAt('POST', '/api/v1/shutdown') ? `, or POST ${near}/api/v1/shutdown` : ''}`,
    ...(bypassed ? ['', '  warning: authentication is off (--dangerous-bypass-auth)'] : []),
    ''
  ]
  return `${lines.join('\n')}\n`
}

const ownerOf = ({ by }: { by: number | undefined }) => (by === undefined ? '' : ` by the server of this home with pid ${by}`)

/** What the default model is, or how to get one; nothing without the pack that knows. */
async function modelLines(kernel: Kernel, { command, demo, isTold }: BannerFacts): Promise<string[]> {
  if (!kernel.routeAt(readAuth.method, readAuth.path)) return []
  const { code, data } = await kernel.inject(readAuth, { query: { check_model: true } })
  if (code !== 0 || !data) return []
  const { ready, default_model, providers_count, warnings = [] } = data
  const remarks = warnings.filter(text => !isTold(text)).map(text => `          warning: ${text}`)
  const others = demo && default_model !== demoModel ? `; the demo model is ${demoModel}` : ''
  if (ready) return [`  model   ${default_model}${warnings.length === 0 ? ' is ready' : ''}${others}`, ...remarks]
  const state = providers_count === 0 ? 'no provider is configured' : default_model === null ? 'no default model is set' : 'not ready'
  return [
    `  model   none: ${state}, so prompts are refused${others}`,
    ...remarks,
    `          to try it without a key   ${command} --demo`,
    `          to use a real one         put it into ${join(kernel.home, 'config.toml')}, or for this start alone:`,
    `          SVC_CODE_MODEL_NAME=large-1 SVC_CODE_MODEL_API_KEY=... SVC_CODE_MODEL_PROVIDER_TYPE=compat_chat \\`,
    `          SVC_CODE_MODEL_BASE_URL=https://models.example/v1 ${command.replace(/ --$/, '')}`
  ]
}

/** A first prompt by hand, in lines for a shell: a command that asks, its approval, what the agent said. */
function tryLines({ home }: Kernel, url: string): string[] {
  const file = shellWord(join(home, 'server.token'))
  const of = (name: string) => `sed -n 's/.*"${name}":"\\([^"]*\\)".*/\\1/p'`
  return [
    `  try     U=${url}/api/v1; J='Content-Type: application/json'; H="Authorization: Bearer $(cat ${file})"`,
    `          S=$(curl -s -H "$H" -H "$J" $U/sessions -d "{\\"metadata\\":{\\"cwd\\":\\"$PWD\\"}}" | sed 's/.*"id":"\\(session_[^"]*\\)".*/\\1/')`,
    `          curl -s -H "$H" -H "$J" $U/sessions/$S/prompts -d '{"content":[{"type":"text","text":"list the files then run date"}]}'; echo`,
    `          until A=$(curl -s -H "$H" "$U/sessions/$S/approvals?status=pending" | ${of('approval_id')}); [ "$A" ]; do sleep 0.3; done`,
    `          curl -s -H "$H" -H "$J" $U/sessions/$S/approvals/$A -d '{"decision":"approved"}'; echo`,
    `          until curl -s -H "$H" $U/sessions/$S/status | grep -q '"busy":false'; do sleep 0.3; done`,
    `          curl -s -H "$H" $U/sessions/$S/messages; echo`
  ]
}
