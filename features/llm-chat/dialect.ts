/** Where the two chat completions wires differ: plain `compat_chat` and `svc` with its extensions. */
import {
  callName,
  canThink,
  holdsThinking,
  keptWith,
  type LlmRequest,
  type LlmTool,
  objectSchema,
  type ResolvedModel,
  typedSchema
} from '../llm/index.ts'
import { plainSchema } from './schema.ts'

/** What one of the two wires does in its own way. */
export interface Dialect {
  readonly protocol: 'compat_chat' | 'svc'
  /** Key under which reasoning goes back before the upstream has shown its own; undefined: it stays away. */
  readonly reasoning_key: string | undefined
  /** Request fields that say how hard to think. */
  thinking(request: LlmRequest): Readonly<Record<string, unknown>>
  /** An answer without reasoning goes back with the field for it, too. */
  blank(request: LlmRequest): boolean
  /** The fields of `thinking` say that the model must not think. */
  off(request: LlmRequest): boolean
  /** Output limit in tokens of a request that names none; undefined: the upstream decides. */
  limit(request: LlmRequest): number | undefined
  /** Name of the output limit. */
  limitKey(model_name: string): 'max_tokens' | 'max_completion_tokens'
  tool(tool: LlmTool): Readonly<Record<string, unknown>>
  /** The name of a call that goes back. */
  callName(name: string): string
}

/** Model families (by upstream name) that refuse `max_tokens`. */
const completionLimitFamilies = [/(^|\/)o[1-9]/, /(^|\/)gpt-[5-9]/]

/** Named level as it is; `off` as the model's `off_effort`; `on` leaves the choice to the model. */
export const compatChat: Dialect = {
  protocol: 'compat_chat',
  reasoning_key: undefined,
  thinking({ effort, messages, model }) {
    if (effort === 'off') return model.off_effort ? { reasoning_effort: model.off_effort } : {}
    if (effort !== 'on' && effort !== '') return { reasoning_effort: effort }
    // Some servers refuse reasoning in the history when the request itself does not ask for any.
    return holdsThinking(messages) ? { reasoning_effort: 'medium' } : {}
  },
  blank: () => false,
  off: ({ effort, model }) => effort === 'off' && model.off_effort !== undefined,
  limit: ({ model }) => model.max_output_size,
  limitKey: name => (completionLimitFamilies.some(family => family.test(name)) ? 'max_completion_tokens' : 'max_tokens'),
  tool: keptWith(({ name, description, parameters }) => ({
    type: 'function',
    function: { name, description, parameters: typedSchema(objectSchema(parameters)) }
  })),
  callName
}

const keptThinking = ({ thinking_keep = 'all' }: ResolvedModel): string => thinking_keep

/** A `thinking` object, the output limit always named, schemas without what only describes them. */
export const svc: Dialect = {
  protocol: 'svc',
  reasoning_key: 'reasoning_content',
  thinking({ effort, model }) {
    if (!canThink(model)) return {}
    if (effort === 'off') return { thinking: { type: 'disabled' } }
    const keep = keptThinking(model)
    return { thinking: { type: 'enabled', ...(effort !== 'on' && effort !== '' && { effort }), ...(keep !== 'off' && { keep }) } }
  },
  // Who is to keep all reasoning refuses calls without any: of another model, or from before the model was asked to think.
  blank: ({ effort, model }) => canThink(model) && effort !== 'off' && keptThinking(model) === 'all',
  off: ({ effort }) => effort === 'off',
  limit: ({ model, context_tokens = 0 }) => model.max_output_size ?? model.max_context_size - context_tokens,
  limitKey: () => 'max_completion_tokens',
  tool: keptWith(({ name, description, parameters }) =>
    name.startsWith('$')
      ? { type: 'builtin_function', function: { name } }
      : { type: 'function', function: { name, description, parameters: plainSchema(parameters) } }
  ),
  callName: name => (name.startsWith('$') ? `$${callName(name.slice(1))}` : callName(name))
}
