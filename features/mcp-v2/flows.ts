/** Logins that are under way: who begins one that is begun joins it, and each is asked for by an id of its own. */
import { AppError, headOf, invalid, late, untilAborted, waitAtMost } from '../../kernel/index.ts'
import type { Entry } from '../mcp/index.ts'
import { OauthFailed } from './contract.ts'
import { idOf } from './credentials.ts'
import { Flow, type FlowPorts, reasonOf } from './flow.ts'

/** Of those who began one login and do not wait yet; the earliest of more has to begin again. */
const idsOfFlow = 100

export type Begun =
  | { readonly status: 'already-authorized' }
  | { readonly status: 'authorization-required'; readonly flowId: string; readonly authorizationUrl: string }

export class Flows {
  readonly #ports: FlowPorts
  readonly #byServer = new Map<string, { readonly flow: Flow; readonly address: Promise<string> }>()
  readonly #byId = new Map<string, Flow>()

  constructor(ports: FlowPorts) {
    this.#ports = ports
  }

  /** Throws OauthFailed (40929) when the server cannot be asked for a login. */
  async begin(entry: Entry): Promise<Begun> {
    if ((await this.#ports.book.accessToken(entry)) !== undefined) return { status: 'already-authorized' }
    const key = idOf(entry)
    const { flow, address } = this.#byServer.get(key) ?? this.#start(key, entry)
    try {
      const authorizationUrl = await address
      const flowId = `flow_${this.#ports.newId()}`
      flow.ids.add(flowId)
      this.#byId.set(flowId, flow)
      const [earliest = ''] = flow.ids
      if (flow.ids.size > idsOfFlow) this.#forget(earliest, flow)
      flow.touch()
      return { status: 'authorization-required', flowId, authorizationUrl }
    } catch (cause) {
      flow.end('it did not begin')
      throw new AppError(OauthFailed, { message: `the login cannot begin: ${reasonOf(cause)}`, cause })
    }
  }

  /** Resolves when the login is on disk. Throws 40001 for an unknown flow, OauthFailed (40929); with the signal's reason when the client goes. */
  async complete(flowId: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
    const flow = this.#byId.get(flowId)
    if (!flow) {
      const message = `Unknown MCP OAuth flow: ${headOf(flowId, 100)} (a login is completed at the server of the home where it began)`
      throw invalid([{ path: 'body.flowId', message }])
    }
    flow.touch()
    const problem = await untilAborted(waitAtMost(flow.outcome, timeoutMs), signal)
    if (problem === late) this.cancel(flowId)
    else this.#forget(flowId, flow)
    if (problem === late) throw new AppError(OauthFailed, { message: 'the login was not finished in time' })
    if (problem !== undefined) throw new AppError(OauthFailed, { message: problem })
  }

  /** The flow goes on for others who began it. */
  cancel(flowId: string): void {
    const flow = this.#byId.get(flowId)
    if (!flow) return
    this.#forget(flowId, flow)
    if (flow.ids.size === 0) flow.end('it was cancelled')
  }

  close(): void {
    for (const { flow } of [...this.#byServer.values()]) flow.end('the server stops')
    this.#byId.clear()
  }

  #forget(flowId: string, flow: Flow): void {
    this.#byId.delete(flowId)
    flow.ids.delete(flowId)
  }

  /** Its end can be asked for until somebody has, or as long as a flow may be idle; the flow itself is kept by those who may ask alone. */
  #forgetLater(ids: ReadonlySet<string>): void {
    const forget = setTimeout(() => {
      for (const id of ids) this.#byId.delete(id)
    }, this.#ports.idleMs)
    forget.unref()
  }

  #start(key: string, entry: Entry) {
    const flow = new Flow(entry, this.#ports, () => {
      if (this.#byServer.get(key)?.flow === flow) this.#byServer.delete(key)
      this.#forgetLater(flow.ids)
    })
    const started = { flow, address: flow.begin() }
    started.address.catch(() => undefined) // whoever began it hears of it
    this.#byServer.set(key, started)
    return started
  }
}
