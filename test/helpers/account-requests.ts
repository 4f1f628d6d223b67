/** Requests of contract 1 that are wrong in one thing each, and the forms that they are made of. */
import type { Asked } from './judged.ts'

/** What is wrong, the request, and for a 40001 the field that its first detail names. */
export type Row = readonly [what: string, asked: Asked, field?: string]
export type Table = Readonly<Record<string, Readonly<Record<number, readonly Row[]>>>>

export const model = (more: object = {}) => ({ model: 'm', max_context_size: 1, ...more })
export const form = (more: object = {}) => ({ type: 'compat_chat', models: [model()], ...more })
export const models = (...names: string[]) => names.map(name => model({ model: name }))

// biome-ignore lint/suspicious/noTemplateCurlyInString: the text itself is meant
export const placeholder = '${HOST}'

export const badForms: readonly (readonly [string, object, string])[] = [
  ['no type', { type: undefined }, 'type'],
  ['a type that there is not', { type: 'compat' }, 'type'],
  ['a type in another case', { type: 'SVC' }, 'type'],
  ['a key that is no text', { api_key: 5 }, 'api_key'],
  ['a key that is null', { api_key: null }, 'api_key'],
  ['a placeholder as URL', { base_url: placeholder }, 'base_url'],
  ['a placeholder in the URL', { base_url: `https://h.example/${placeholder}/` }, 'base_url'],
  ['a URL that is no text', { base_url: ['https://h.example'] }, 'base_url'],
  ['a default model that is not listed', { default_model: 'n' }, 'default_model'],
  ['a default model by its alias', { default_model: 'a/m' }, 'default_model'],
  ['no models', { models: undefined }, 'models'],
  ['an empty list of models', { models: [] }, 'models'],
  ['models that are no list', { models: { 0: model() } }, 'models'],
  ['a model twice', { models: models('m', 'n', 'm') }, 'models'],
  ['a model that is no object', { models: ['m'] }, 'models.0'],
  ['a model without a name', { models: [{ max_context_size: 1 }] }, 'models.0.model'],
  ['a model with an empty name', { models: models('') }, 'models.0.model'],
  ['no context size', { models: [{ model: 'm' }] }, 'models.0.max_context_size'],
  ['a context size of 0', { models: [model({ max_context_size: 0 })] }, 'models.0.max_context_size'],
  ['a context size with a fraction', { models: [model({ max_context_size: 1.5 })] }, 'models.0.max_context_size'],
  ['a context size as text', { models: [model({ max_context_size: '1' })] }, 'models.0.max_context_size'],
  ['an output size of 0', { models: [model({ max_output_size: 0 })] }, 'models.0.max_output_size'],
  ['a display name that is no text', { models: [model({ display_name: 5 })] }, 'models.0.display_name'],
  ['capabilities that are no list', { models: [model({ capabilities: 'thinking' })] }, 'models.0.capabilities'],
  ['an effort that is no text', { models: [model({ support_efforts: ['low', 1] })] }, 'models.0.support_efforts.1'],
  ['a toggle that is no boolean', { models: [model({ adaptive_thinking: 'yes' })] }, 'models.0.adaptive_thinking'],
  ['the second model wrong', { models: [model(), model({ model: 'n', max_context_size: -1 })] }, 'models.1.max_context_size']
]
export const badIds = ['', ' a', '-a', '_a', 'a/b', 'a:b', 'a.b', 'a\n', 5, null]
export const noObject: readonly Row[] = [
  ['no body', {}, 'body'],
  ['a body that is null', { raw: 'null' }, 'body'],
  ['a list as body', { body: [] }, 'body'],
  ['a text as body', { body: 'x' }, 'body'],
  ['a body that is no JSON', { raw: '{"id":' }, 'body']
]
export const badTails = (base: string, action: string): readonly Row[] =>
  ['a', 'a:', `:${action}`, `%3A${action}`, 'a:zap', `a:${action.toUpperCase()}`, `a:${action}:`].map(tail => [
    `the tail ${tail}`,
    { url: `/api/v1/${base}/${tail}` }
  ])
export const badProvider: readonly Row[] = [['an empty provider', { query: { provider: '' } }, 'query.provider']]

const importable = { api: 'https://entry.example/v1', models: { m: { id: 'm', limit: { context: 10 } } } }
export const directory = {
  good: { id: 'good', ...importable },
  unknown: { id: 'unknown', type: 'morse', ...importable },
  sealed: { id: 'sealed', npm: '@ai-sdk/cohere', ...importable },
  homeless: { id: 'homeless', ...importable, api: undefined },
  empty: { id: 'empty', ...importable, models: {} },
  'odd/id': { id: 'odd/id', ...importable }
}
