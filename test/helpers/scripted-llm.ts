/** The scripted model as the service itself: a turn without the packs of models. */
import { Llm } from '../../features/llm/index.ts'
import { definePack, type Pack } from '../../kernel/index.ts'
import { type Reply, type ReplyScript, replyScript } from '../../testing/scripted-model.ts'
import { resolvedModel } from './model.ts'

export { modelFailure as failure, modelText as text, type Reply, toolCalls } from '../../testing/scripted-model.ts'

export interface ScriptedLlm extends Pick<ReplyScript, 'requests' | 'arrived'> {
  readonly pack: Pack
  readonly llm: Llm
}

export const testModel = resolvedModel({
  alias: 'test',
  provider_id: 'test',
  protocol: 'scripted',
  name: 'test-model',
  display_name: 'Test',
  max_context_size: 100_000
})

/** The last reply repeats. */
export function scriptedLlm(...replies: readonly Reply[]): ScriptedLlm {
  const { requests, arrived, stream } = replyScript(...replies)
  const llm: Llm = {
    resolve: alias => ({ ...testModel, ...(alias === undefined ? {} : { alias }) }),
    async lookUp(alias) {
      return this.resolve(alias)
    },
    knows: () => true,
    defaultAlias: () => 'test',
    price: () => undefined,
    effort: (_model, requested) => requested ?? 'off',
    checkEffort: () => undefined,
    stream
  }
  return { llm, requests, arrived, pack: definePack({ name: 'llm', provides: [Llm], setup: ctx => ctx.provide(Llm, llm) }) }
}
