/** Wires tools-web: FetchURL, and WebSearch where a service is configured. */
import { definePack, KernelInfo } from '../../kernel/index.ts'
import { Config, servicesSection } from '../config/index.ts'
import { HostIdentity, LlmLogins, OutboundHosts } from '../llm/index.ts'
import { ToolAuthority, ToolSets, Tools } from '../tools/index.ts'
import { Options } from './contract.ts'
import { Extractor } from './extract.ts'
import { createFetchUrl } from './fetch-url.ts'
import { serviceUrl } from './services.ts'
import { webOf } from './web.ts'
import { createWebSearch } from './web-search.ts'

export default definePack({
  name: 'tools-web',
  description: 'FetchURL and WebSearch',
  area: 'Tools',
  needs: { authority: ToolAuthority, info: KernelInfo },
  optional: { config: Config, identity: HostIdentity },
  config: Options,
  setup(ctx, { info, config, identity }) {
    const { timeout_ms: timeoutMs, extract_ms, allow_addresses } = ctx.config
    const userAgent = `svc-code/${info.version}`
    const web = webOf(process.env, allow_addresses)
    ctx.own(() => web.close())
    const logins = ctx.collect(LlmLogins)
    const records = () => config()?.get(servicesSection) ?? servicesSection.default
    const introduction = async () => (await identity()?.headers()) ?? { 'user-agent': userAgent }
    const services = { upstream: web.services, logins: () => logins.items(), introduction, timeoutMs }
    const fetchPorts = {
      ...web.pages,
      userAgent,
      extractor: new Extractor(extract_ms),
      timeoutMs,
      services,
      service: () => records().svc_fetch
    }
    ctx.contribute(Tools, createFetchUrl(fetchPorts))
    const search = [createWebSearch({ services, timeoutMs, service: () => records().svc_search })]
    ctx.contribute(ToolSets, {
      name: 'web-search',
      names: ['WebSearch'],
      tools: () => (serviceUrl(records().svc_search) === undefined ? [] : search)
    })
    ctx.contribute(OutboundHosts, {
      pack: ctx.name,
      hosts: () => {
        const { svc_search, svc_fetch } = records()
        const [searched, fetched] = [serviceUrl(svc_search), serviceUrl(svc_fetch)]
        return [
          ...(searched === undefined ? [] : [{ url: searched, why: 'the search service', when: 'WebSearch' }]),
          ...(fetched === undefined ? [] : [{ url: fetched, why: 'the fetch service', when: 'FetchURL' }]),
          { why: 'pages of the public web', when: 'FetchURL' }
        ]
      }
    })
  }
})
