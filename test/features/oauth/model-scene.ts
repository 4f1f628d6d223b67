/** Models beside a managed login: an adapter that notes with which key it was asked. */
import { Llm, LlmAdapters, type LlmPart, type ResolvedModel } from '../../../features/llm/index.ts'
import { definePack } from '../../../kernel/index.ts'

/** A `svc` adapter that answers HTTP 401 to the keys in `stale`. */
export function modelScene(stale: readonly string[]) {
  const keys: (string | undefined)[] = []
  let llm: Llm | undefined
  const adapter = definePack({
    name: 'adapter',
    setup: ctx =>
      ctx.contribute(LlmAdapters, {
        protocol: 'svc',
        needs_credential: true,
        async *stream({ model }): AsyncGenerator<LlmPart> {
          keys.push(model.api_key)
          const failure = { code: 'provider.auth_error', name: 'AuthError', message: `no ${model.api_key}`, retryable: false, status: 401 }
          if (stale.includes(model.api_key ?? '')) yield { type: 'error', error: failure }
          else {
            yield { type: 'text', text: 'hello' }
            yield { type: 'finish', reason: 'completed' }
          }
        }
      })
  })
  const reader = definePack({
    name: 'reader',
    needs: { llm: Llm },
    setup(_, services) {
      llm = services.llm
    }
  })
  const ask = async (model: ResolvedModel): Promise<LlmPart[]> => {
    const parts: LlmPart[] = []
    const request = { model, system: '', messages: [], tools: [], cache_key: 's', effort: 'off' }
    for await (const part of llm?.stream(request, new AbortController().signal) ?? []) parts.push(part)
    return parts
  }
  const resolve = (alias?: string) => {
    if (!llm) throw new Error('llm is not there')
    return llm.resolve(alias)
  }
  return { packs: [adapter, reader], keys, ask, resolve }
}
