/** The messages wire as a model adapter. */
import {
  credentialHeader,
  type LlmAdapter,
  modelListRequest,
  type ResolvedModel,
  type StreamLimits,
  streamEvents,
  type Upstream
} from '../llm/index.ts'
import { MessagesDecoder } from './decode.ts'
import { encode } from './encode.ts'
import { betas as betaNames, headerNames, version } from './names.ts'

/** `limits`: of one event and one response; default as in the llm pack. */
export function messagesAdapter(upstream: Upstream, limits?: StreamLimits): LlmAdapter {
  return {
    protocol: 'compat_messages',
    needs_credential: true,
    needs_base_url: true,
    modelList: server =>
      modelListRequest(server, `${isVersioned(server) ? '' : '/v1'}/models?limit=1000`, {
        keyHeader: headerNames.key,
        headers: { [headerNames.version]: version }
      }),
    stream(request, signal) {
      const { body, betas } = encode(request)
      const model = withBetas(request.model, betas)
      const headers = { [headerNames.version]: version, ...credentialHeader(model, headerNames.key) }
      const path = pathOf(model, betas.includes(betaNames.context))
      return streamEvents(upstream, { model, path, headers, body, decoder: new MessagesDecoder(), ...(limits && { limits }) }, signal)
    }
  }
}

/** Base URLs are written with and without the version. */
const isVersioned = ({ base_url = '' }: Pick<ResolvedModel, 'base_url'>): boolean =>
  URL.canParse(base_url) && /\/v1\/?$/.test(new URL(base_url).pathname)

function pathOf(model: ResolvedModel, beta: boolean): string {
  return `${isVersioned(model) ? '' : '/v1'}/messages${beta ? '?beta=true' : ''}`
}

/** Beta names that the user configured stay. */
function withBetas(model: ResolvedModel, betas: readonly string[]): ResolvedModel {
  if (betas.length === 0) return model
  const own = (model.headers[headerNames.betas] ?? '').split(',').map(name => name.trim())
  const all = [...new Set([...own, ...betas])].filter(name => name !== '')
  return { ...model, headers: { ...model.headers, [headerNames.betas]: all.join(',') } }
}
