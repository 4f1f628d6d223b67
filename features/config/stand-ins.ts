/** Domains that others own: these count while no active pack contributes one of their name, so that the domain is kept, checked and shown. */
import { oneOf, type Static, Type } from '../../kernel/index.ts'
import { defined, textOf } from './environment.ts'
import type { ConfigSection } from './service.ts'

const Anything = Type.Object({})
const Records = Type.Record(Type.String(), Anything)
/** A string that nobody may have set. */
const Name = Type.Unsafe<string | undefined>(Type.String())

const providers: ConfigSection<typeof Records> = {
  name: 'providers',
  schema: Records,
  default: {},
  toWire: (value: Static<typeof Records>) =>
    Object.fromEntries(
      Object.entries(value as Record<string, Record<string, unknown>>).map(([id, { type, base_url, default_model, api_key }]) => [
        id,
        defined({
          type: textOf(type) ?? '',
          base_url: textOf(base_url),
          default_model: textOf(default_model),
          has_api_key: textOf(api_key) !== undefined
        })
      ])
    )
}
const models: ConfigSection<typeof Records> = { name: 'models', schema: Records, default: {} }

/** One for each domain of the configuration object that this pack does not own (contract 1, Configuration object). */
export const standIns: readonly ConfigSection[] = [
  providers,
  { name: 'default_provider', schema: Name, default: undefined },
  { name: 'default_model', schema: Name, default: undefined },
  models,
  { name: 'thinking', schema: Anything, default: {} },
  { name: 'default_permission_mode', schema: oneOf(['manual', 'yolo', 'auto']), default: 'manual' },
  { name: 'permission', schema: Anything, default: {} }
]
