/** Models: resolves aliases and sends requests through the adapter of their protocol. */
import { AppError, definePack, derived, KernelInfo } from '../../kernel/index.ts'
import { Config, type ConfigSection, ConfigSections, Environment } from '../config/index.ts'
import { checkEffort, chooseEffort } from './effort.ts'
import { nonBlank } from './env-table.ts'
import { extraHeaders } from './environment.ts'
import { guardStream, passing } from './guard.ts'
import { HostIdentity, hostIdentity, introduced } from './host-identity.ts'
import { isLocalProvider, modelHosts, tokenHosts } from './hosts.ts'
import { LlmLogins, loginOf } from './login.ts'
import { Offline, offlineSection, startedOffline } from './offline.ts'
import { guardOutbound, Outbound, type OutboundHost, OutboundHosts } from './outbound.ts'
import { priceOf } from './price.ts'
import type { OauthRef } from './records.ts'
import type { LlmError, LlmPart, LlmRequest, ResolvedModel } from './request.ts'
import { sendInForm } from './request-forms.ts'
import { defaultAlias, KeptModels, knowsModel, type ModelTable } from './resolve.ts'
import { defaultModelSection, llmSections, modelsSection, providersSection, thinkingSection } from './sections.ts'
import { CredentialRejected, Llm, LlmAdapters, LlmModels, ModelUnresolved, NoCredential, NoProvider, RequestForms } from './service.ts'
import { streamOf, Tries } from './tries.ts'
import { withLogin, withToken } from './with-token.ts'

export default definePack({
  name: 'llm',
  description: 'Providers, model aliases and the port to model adapters',
  area: 'Models',
  needs: { config: Config, info: KernelInfo },
  provides: [Llm, Outbound, HostIdentity],
  errors: [NoProvider, NoCredential, CredentialRejected, ModelUnresolved],
  setup(ctx, { config, info }) {
    const adapters = ctx.collect(LlmAdapters)
    const models = ctx.collect(LlmModels)
    const logins = ctx.collect(LlmLogins)
    const forms = ctx.collect(RequestForms)
    /** Who brought the adapters and models that were seen, by protocol and alias. */
    const packs = new Map<string, string>()
    const remember = () => {
      for (const { pack, item } of adapters.entries()) packs.set(`protocol ${item.protocol}`, pack)
      for (const { pack, item } of models.entries()) packs.set(`model ${item.alias}`, pack)
    }
    remember()
    adapters.onChange(remember)
    models.onChange(remember)
    const absence = (what: string) => {
      const pack = packs.get(what)
      return pack === undefined ? undefined : info.absence(pack)
    }
    const login = (provider_id: string, oauth?: OauthRef) => loginOf(logins.items(), provider_id, oauth)
    // Sections differ in their schema type; the point holds them as sections of any schema.
    for (const section of [...llmSections, startedOffline(offlineSection, info.offline)])
      ctx.contribute(ConfigSections, section as ConfigSection)

    const variables = new Environment(process.env, (name, problem) => ctx.log.warn(`environment: ${name} ${problem}`))
    const sampling = { temperature: variables.number('MODEL_TEMPERATURE'), top_p: variables.number('MODEL_TOP_P') }

    const loginStatus: ModelTable['loginStatus'] = (provider_id, oauth) =>
      login(provider_id, oauth)?.status(provider_id, oauth) ?? 'unauthenticated'
    const kept = new KeptModels()
    const table = derived(
      () => [config.revision, models.items(), adapters.items(), process.env.SVC_CODE_CUSTOM_HEADERS],
      (): ModelTable => ({
        providers: config.get(providersSection),
        models: config.get(modelsSection),
        default_model: config.get(defaultModelSection),
        contributed: models.items(),
        adapters: adapters.items(),
        absence,
        user_agent: `svc-code/${info.version}`,
        extra_headers: extraHeaders(process.env.SVC_CODE_CUSTOM_HEADERS),
        thinking_keep: config.get(thinkingSection).keep,
        ...sampling,
        loginStatus
      })
    )
    ctx.own(table.forget)

    const offline = new Offline({ config, started: info.offline, isLocalProvider: url => isLocalProvider(url, table()) })
    ctx.own(guardOutbound(url => offline.guard(url)))
    // Looks at the file now: one that breaks later has had its say.
    offline.reason()
    const callers = ctx.collect(OutboundHosts)
    ctx.contribute(OutboundHosts, {
      pack: ctx.name,
      hosts: async () => [...modelHosts(table(), process.env), ...(await tokenHosts(table()))]
    })
    ctx.provide(Outbound, {
      async report() {
        const reason = offline.reason()
        const row = (pack: string, host: OutboundHost) => ({ ...host, pack, refused: reason !== undefined && offline.refuses(host.url) })
        const lists = callers.entries().map(async ({ pack, item }) => {
          try {
            return (await item.hosts()).map(host => row(item.pack, host))
          } catch (error) {
            ctx.blame(pack, 'hosts that it calls', error)
            return []
          }
        })
        return { offline: reason, hosts: (await Promise.all(lists)).flat() }
      }
    })

    const identity = hostIdentity(ctx.home, info.version)
    ctx.provide(HostIdentity, identity)

    ctx.provide(Llm, {
      resolve: alias => kept.resolve(alias, table()),
      async lookUp(alias) {
        try {
          return kept.resolve(alias, table())
        } catch (error) {
          if (!AppError.is(error) || (error.code !== NoProvider.code && error.code !== ModelUnresolved.code)) throw error
          await config.reload()
          return kept.resolve(alias, table())
        }
      },
      knows: alias => knowsModel(alias, table()),
      defaultAlias: () => defaultAlias(table()),
      price: alias => priceOf(alias, table()),
      effort: (model, requested) =>
        chooseEffort(model, config.get(thinkingSection), requested, nonBlank(process.env.SVC_CODE_MODEL_THINKING_EFFORT)),
      checkEffort,
      stream: (request, signal) => sendInForm(request, forms, fitted => send(fitted, signal))
    })

    function send(request: LlmRequest, signal: AbortSignal): AsyncIterable<LlmPart> {
      const { model } = request
      const { pack, item: adapter } = adapters.entries().find(({ item }) => item.protocol === model.protocol) ?? {}
      if (!adapter || pack === undefined)
        return streamOf({ type: 'error', error: missing(model.protocol, absence(`protocol ${model.protocol}`)) })
      const what = `model adapter ${model.protocol}`
      const open = (to: ResolvedModel) => ctx.onAccountOf(pack, what, () => adapter.stream({ ...request, model: to }, signal))
      const guarded = (sent: ResolvedModel, secrets = sent) =>
        guardStream(
          () => open(sent),
          secrets,
          signal,
          error => ctx.blame(pack, what, error)
        )
      const ask = (to: ResolvedModel) =>
        to.own_headers ? new Tries(async refused => (refused ? undefined : guarded(...(await introduced(to, identity))))) : guarded(to)
      const { key_file, provider_id, oauth } = model
      if (key_file !== undefined && adapter.authorize) return withToken(model, ask, given => adapter.authorize!(model, given), signal)
      return model.login ? withToken(model, ask, given => withLogin(model, login(provider_id, oauth), given), signal) : ask(model)
    }
  }
})

function missing(protocol: string, away: AppError | undefined): LlmError {
  if (away) {
    const { retry_after_ms } = away.details as { readonly retry_after_ms?: number }
    return passing('AdapterMissing', retry_after_ms)
  }
  const { message } = new AppError(ModelUnresolved, { message: `no adapter speaks the protocol ${protocol}` })
  return { code: 'model.not_configured', name: 'AdapterMissing', message, retryable: false }
}
