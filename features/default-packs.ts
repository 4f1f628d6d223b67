/** The packs of a full server, in activation order for ties. Loaded one by one, so that a disabled pack costs nothing. */
import type { Pack } from '../kernel/index.ts'

type Loader = () => Promise<{ default: Pack }>

export const defaultPacks: Readonly<Record<string, Loader>> = {
  meta: () => import('./meta/pack.ts'),
  'api-docs': () => import('./api-docs/pack.ts'),
  instances: () => import('./instances/pack.ts'),
  config: () => import('./config/pack.ts'),
  workspaces: () => import('./workspaces/pack.ts'),
  sessions: () => import('./sessions/pack.ts'),
  llm: () => import('./llm/pack.ts'),
  'llm-chat': () => import('./llm-chat/pack.ts'),
  'llm-messages': () => import('./llm-messages/pack.ts'),
  'llm-responses': () => import('./llm-responses/pack.ts'),
  'llm-genai': () => import('./llm-genai/pack.ts'),
  providers: () => import('./providers/pack.ts'),
  catalog: () => import('./catalog/pack.ts'),
  oauth: () => import('./oauth/pack.ts'),
  history: () => import('./history/pack.ts'),
  interactions: () => import('./interactions/pack.ts'),
  tools: () => import('./tools/pack.ts'),
  'tools-files': () => import('./tools-files/pack.ts'),
  'tools-shell': () => import('./tools-shell/pack.ts'),
  permissions: () => import('./permissions/pack.ts'),
  agent: () => import('./agent/pack.ts'),
  'request-repair': () => import('./request-repair/pack.ts'),
  prompts: () => import('./prompts/pack.ts'),
  messages: () => import('./messages/pack.ts')
}

/** Deployment options of the full server; those of the operator win. Packs that are put together in another way go without. */
export const defaultConfig: Readonly<Record<string, object>> = {
  catalog: { directory: 'https://models.dev' }
}

/** Loads the default packs but the disabled ones. They are released together: each reports the product's `version`. */
export async function loadDefaultPacks(disabled: readonly string[] = [], version?: string): Promise<Pack[]> {
  const wanted = Object.entries(defaultPacks).filter(([name]) => !disabled.includes(name))
  const packs = await Promise.all(wanted.map(async ([, load]) => (await load()).default))
  return version === undefined ? packs : packs.map(pack => ({ ...pack, version }))
}
