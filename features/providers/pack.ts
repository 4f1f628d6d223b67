/** Wires the providers pack: providers, models, readiness, refresh. */
import { AppError, definePack, invalid, KernelInfo, problems } from '../../kernel/index.ts'
import { Config } from '../config/index.ts'
import {
  createUpstream,
  defaultModelSection,
  Llm,
  LlmAdapters,
  LlmLogins,
  LlmModels,
  loginOf,
  ModelRecord,
  modelsSection,
  nonBlank,
  OutboundHosts,
  providersSection
} from '../llm/index.ts'
import { addProvider, changeProvider, exists, missing, removeProvider } from './changes.ts'
import {
  CreateBody,
  createProvider,
  deleteProvider,
  listModels,
  listProviders,
  ModelMissing,
  modelCatalogChanged,
  ReplaceBody,
  readAuth,
  readProvider,
  refreshLogins,
  refreshProvider,
  refreshProviders,
  replaceProvider,
  setDefaultModel
} from './contract.ts'
import { importProviders } from './imports.ts'
import { readiness } from './readiness.ts'
import { checkedBody } from './record-builder.ts'
import { Refresher } from './refresh.ts'
import { registryOf } from './registry.ts'
import { scheduleRefresh } from './schedule.ts'
import { Providers } from './service.ts'
import { probeProvider, registryHosts, registryKeys } from './sources.ts'
import { rowsOf, save } from './tables.ts'
import { View, type ViewSource } from './view.ts'

export default definePack({
  name: 'providers',
  description: 'Providers and models: create, replace, refresh, defaults, readiness',
  area: 'Models',
  needs: { config: Config, llm: Llm, info: KernelInfo },
  provides: [Providers],
  setup(ctx, { config, info, llm }) {
    const { env } = process
    const models = ctx.collect(LlmModels)
    const logins = ctx.collect(LlmLogins)
    const adapters = ctx.collect(LlmAdapters)
    const login = (id: string) => loginOf(logins.items(), id)
    const source: ViewSource = {
      config,
      contributed: () => models.items(),
      loginStatus: id => login(id)?.status(id) ?? 'unauthenticated'
    }
    const view = new View(source)
    const forcedDefault = () => nonBlank(defaultModelSection.overlay?.(env))
    const fromEnvironment = (id: string) => Object.hasOwn(providersSection.overlay?.(env) ?? {}, id)

    ctx.contribute(OutboundHosts, { pack: ctx.name, hosts: () => registryHosts(config.get(providersSection)) })

    ctx.route(readAuth, async ({ query: { check_model } }) => {
      await config.reload()
      return readiness({ ...source, config, llm }, check_model)
    })
    ctx.route(listModels, async () => {
      await config.reload()
      return { items: [...view.models()] }
    })
    ctx.route(setDefaultModel, async ({ params: { model_id } }) => {
      const elsewhere = () =>
        Object.hasOwn(modelsSection.overlay?.(env) ?? {}, model_id) || models.items().some(({ alias }) => alias === model_id)
      const unknown = () => new AppError(ModelMissing, { message: `model ${model_id} not found` })
      await save(config, file => {
        // A record that is no model is not listed either, and must not become the default before the answer says so.
        const record = rowsOf(file, 'models').get(model_id)
        if (!(record !== undefined && problems(ModelRecord, record).length === 0) && !elsewhere()) throw unknown()
        const forced = forcedDefault()
        if (forced !== undefined && forced !== model_id) {
          const message = `the environment (SVC_CODE_MODEL_NAME) makes ${forced} the default model, and another one cannot be set here`
          throw invalid([{ path: 'params.model_id', message }])
        }
        file.default_model = model_id
      })
      const model = view.model(model_id)
      if (!model) throw unknown()
      return { default_model: model_id, model }
    })

    const ofTheFile = (id: string, path: string) => {
      if (!fromEnvironment(id)) return
      throw invalid([{ path, message: `provider ${id} is defined by the environment (SVC_CODE_MODEL_NAME) and cannot be changed here` }])
    }
    const shown = (id: string) => {
      const item = view.provider(id)
      if (!item) throw missing(id)
      return item
    }
    ctx.route(listProviders, async () => {
      await config.reload()
      return { items: [...view.providers()] }
    })
    ctx.route(readProvider, async ({ params: { provider_id } }) => {
      await config.reload()
      const item = shown(provider_id)
      const api_key = fromEnvironment(provider_id) ? undefined : nonBlank(config.get(providersSection)[provider_id]?.api_key)
      return { ...item, ...(api_key && { api_key }) }
    })
    ctx.route(createProvider, async ({ body: given }) => {
      const body = checkedBody(CreateBody, given, 'id')
      if (fromEnvironment(body.id)) throw exists(body.id)
      await save(config, file => addProvider(file, body, forcedDefault() !== undefined))
      return shown(body.id)
    })
    ctx.route(replaceProvider, async ({ params: { provider_id }, body: given }) => {
      const isSame = (given as { readonly new_id?: unknown } | undefined)?.new_id === provider_id
      const body = checkedBody(ReplaceBody, given, isSame ? undefined : 'new_id')
      const { new_id = provider_id } = body
      ofTheFile(provider_id, 'params.provider_id')
      await save(config, file => changeProvider(file, provider_id, body, fromEnvironment))
      return { provider: shown(new_id) }
    })
    ctx.route(deleteProvider, async ({ params: { provider_id } }) => {
      ofTheFile(provider_id, 'params.provider_id')
      await save(config, file => removeProvider(file, provider_id))
      return null
    })

    const upstream = createUpstream()
    ctx.own(() => upstream.close())
    const parts = { upstream, login, adapters: adapters.items, user_agent: `svc-code/${info.version}` }
    ctx.provide(Providers, {
      ids: () => Object.keys(config.get(providersSection)),
      probe: (id, signal) => probeProvider(id, config.get(providersSection)[id], parts, signal),
      importAll: async (imported, { registry } = {}) => {
        for (const { id } of imported) ofTheFile(id, '')
        const rules = { registry, hasDefault: forcedDefault() !== undefined }
        const { ids, aliases } = await save(config, file => importProviders(file, imported, rules))
        return { providers: ids.map(shown), models_imported: aliases.length }
      },
      async registryKey(url) {
        await config.reload()
        const records = Object.values(config.get(providersSection)).filter(record => registryOf(record) === url)
        return registryKeys(records).find(key => key !== undefined)
      }
    })

    const emitChanged = ctx.event(modelCatalogChanged)
    const refresher = new Refresher({
      ...parts,
      config,
      log: ctx.log,
      fromEnvironment,
      managed_url: nonBlank(env.SVC_CODE_API_BASE_URL),
      signal: ctx.signal,
      onChange: emitChanged
    })
    ctx.route(refreshProvider, ({ params: { provider_id } }) => refresher.run({ id: provider_id }))
    ctx.route(refreshProviders, () => refresher.run('all'))
    ctx.route(refreshLogins, () => refresher.run('logins'))
    const refresh = () =>
      refresher.run('all').catch((err: unknown) => {
        if (!ctx.signal.aborted) ctx.log.warn({ err }, 'the scheduled refresh failed')
      })
    const schedule = scheduleRefresh(config, refresh)
    ctx.own(schedule.close)
    ctx.tap(ctx.hooks.started, () => schedule.begin())
  }
})
