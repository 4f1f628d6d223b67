/** Wires the managed login: flows, credentials, account questions. */
import { definePack, invalid } from '../../kernel/index.ts'
import { Config } from '../config/index.ts'
import {
  authError,
  createUpstream,
  HostIdentity,
  Llm,
  LlmLogins,
  LlmModels,
  modelsSection,
  type OauthRef,
  OutboundHosts,
  providersSection,
  TokenProblem
} from '../llm/index.ts'
import { MANAGED_PROVIDER } from '../providers/index.ts'
import { readUsageAnswer, readUserInfoAnswer } from './account-answers.ts'
import { askAccount } from './account-questions.ts'
import { AccountService } from './account-service.ts'
import { cancelLogin, credentialStore, logout, Options, readLogin, readRegion, readUsage, readUserInfo, startLogin } from './contract.ts'
import { tightenCredentials } from './credential.ts'
import {
  type Account,
  accountHosts,
  accountOf,
  accountOfReference,
  clientId,
  endpointOf,
  missingSettings,
  ownSlots,
  regionOf,
  renewalHosts,
  type Surroundings
} from './endpoint.ts'
import { Enrolment, logoutOther } from './enrolment.ts'
import { Logins } from './logins.ts'
import { AccountProblem } from './problem.ts'
import { markedRegion } from './region-marker.ts'
import { TokenStore } from './token-store.ts'

export default definePack({
  name: 'oauth',
  description: 'Managed login: device-code flow, stored tokens, usage, account, region',
  area: 'Models',
  // Llm is needed for its sections of the configuration.
  needs: { config: Config, llm: Llm, identity: HostIdentity },
  config: Options,
  async setup(ctx, { config, identity }) {
    const { log, home, signal } = ctx
    const open = await tightenCredentials(home)
    if (open.length > 0) log.warn({ files: open }, 'credentials were readable by others; they are not any more')
    const { poll_unit_ms: unit_ms } = ctx.config
    const now = () => ctx.now()
    const upstream = createUpstream()
    ctx.own(() => upstream.close())
    const around = (): Surroundings => ({ options: ctx.config, env: process.env, marker: markedRegion(home, process.env) })
    const client_id = () => clientId(around())

    const headers = () => identity.headers()
    const service = new AccountService({ upstream, now, headers })
    const store = ctx.store(credentialStore, { dir: 'credentials' })
    const tokens = new TokenStore({ home, store, service, client_id, now, log, unit_ms })
    ctx.own(() => tokens.close())
    const models = ctx.collect(LlmModels)
    const enrolment = new Enrolment({ config, upstream, headers, contributed: () => models.items(), log, signal })
    const account = (provider_id: string, oauth?: OauthRef): Account | undefined => {
      if (oauth) return accountOfReference(oauth, undefined, around())
      const providers = config.get(providersSection)
      return accountOf(provider_id, Object.hasOwn(providers, provider_id) ? providers[provider_id] : undefined, around())
    }
    const logins = new Logins({
      service,
      tokens,
      enrolment,
      now,
      unit_ms,
      client_id,
      current: () => account(MANAGED_PROVIDER),
      endpointOf: region => endpointOf(region, enrolment.record(), around()),
      missing: endpoint => missingSettings(endpoint, around()),
      slots: () => ownSlots(enrolment.record(), around()),
      failed: err => log.error({ err }, 'a login failed')
    })
    ctx.own(() => logins.close())
    const others = () => [
      ...Object.entries(config.get(providersSection)).flatMap(([id, { oauth }]) => (oauth && id !== MANAGED_PROVIDER ? account(id) : [])),
      ...Object.values(config.get(modelsSection)).flatMap(({ provider, oauth, overrides }) =>
        [oauth, overrides?.oauth].flatMap(own => (own ? account(provider, own) : []))
      )
    ]
    ctx.contribute(OutboundHosts, {
      pack: ctx.name,
      hosts: () => [...accountHosts(account(MANAGED_PROVIDER)), ...renewalHosts(others())]
    })

    let record = JSON.stringify(enrolment.record())
    config.onChange(() => {
      const before = record
      record = JSON.stringify(enrolment.record())
      if (record !== before) logins.providerChanged()
    })

    ctx.contribute(LlmLogins, {
      status(provider_id, oauth) {
        const of = account(provider_id, oauth)
        return of ? tokens.status(of) : 'unauthenticated'
      },
      async accessToken(provider_id, { oauth, ...options }) {
        const of = account(provider_id, oauth)
        return of && (await tokens.token(of, options).catch(asTokenProblem))
      }
    })

    const of = ({ provider = MANAGED_PROVIDER }: { readonly provider?: string }) => provider
    const managed = (input: { readonly provider?: string }) => of(input) === MANAGED_PROVIDER
    ctx.route(startLogin, async ({ body, signal }) => {
      if (!managed(body)) throw invalid([{ path: 'body.provider', message: `only ${MANAGED_PROVIDER} has a managed login` }])
      await config.reload()
      return logins.start(body.region, signal)
    })
    ctx.route(readLogin, ({ query }) => (managed(query) ? (logins.read() ?? null) : null))
    ctx.route(cancelLogin, ({ query }) => (managed(query) ? logins.cancel() : { cancelled: false, status: 'cancelled' as const }))
    ctx.route(logout, async ({ body }) => {
      if (managed(body)) await logins.logout()
      else await logoutOther(of(body), { config, tokens, account, managed: () => ownSlots(enrolment.record(), around()) })
      return { logged_out: true as const, provider: of(body) }
    })
    const questions = { service, tokens, log, timeout_ms: ctx.config.account_timeout_ms }
    /** Another server of the home may have logged in a moment ago. */
    const current = async (input: { readonly provider?: string }) => {
      await config.reload()
      return account(of(input))
    }
    ctx.route(readUsage, async ({ query, signal }) => askAccount(await current(query), '/usages', readUsageAnswer, questions, signal))
    ctx.route(readUserInfo, async ({ query, signal }) => askAccount(await current(query), '/me', readUserInfoAnswer, questions, signal))
    ctx.route(readRegion, async () => {
      await config.reload()
      return { region: regionOf(enrolment.record(), around()) }
    })
  }
})

/** What another try cannot change ends a turn at once. */
function asTokenProblem(error: unknown): never {
  throw error instanceof AccountProblem && !error.transient ? new TokenProblem(authError(error.message), error) : error
}
