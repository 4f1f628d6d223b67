/** The packs of a full server, in activation order for ties. Loaded one by one, so that a disabled pack costs nothing. */
import { definePack, type Pack } from '../kernel/index.ts'

type Loader = () => Promise<{ default: Pack }>

export const defaultPacks: Readonly<Record<string, Loader>> = {
  meta: () => import('./meta/pack.ts'),
  debug: () => import('./debug/pack.ts'),
  'api-docs': () => import('./api-docs/pack.ts'),
  instances: () => import('./instances/pack.ts'),
  peers: () => import('./peers/pack.ts'),
  packs: () => import('./packs/pack.ts'),
  config: () => import('./config/pack.ts'),
  'gui-store': () => import('./gui-store/pack.ts'),
  workspaces: () => import('./workspaces/pack.ts'),
  sessions: () => import('./sessions/pack.ts'),
  'sessions-v2': () => import('./sessions-v2/pack.ts'),
  llm: () => import('./llm/pack.ts'),
  'llm-chat': () => import('./llm-chat/pack.ts'),
  'llm-messages': () => import('./llm-messages/pack.ts'),
  'llm-responses': () => import('./llm-responses/pack.ts'),
  'llm-genai': () => import('./llm-genai/pack.ts'),
  providers: () => import('./providers/pack.ts'),
  catalog: () => import('./catalog/pack.ts'),
  oauth: () => import('./oauth/pack.ts'),
  files: () => import('./files/pack.ts'),
  'file-search': () => import('./file-search/pack.ts'),
  fs: () => import('./fs/pack.ts'),
  'fs-host': () => import('./fs-host/pack.ts'),
  git: () => import('./git/pack.ts'),
  history: () => import('./history/pack.ts'),
  interactions: () => import('./interactions/pack.ts'),
  tools: () => import('./tools/pack.ts'),
  'tools-files': () => import('./tools-files/pack.ts'),
  'tools-shell': () => import('./tools-shell/pack.ts'),
  'tools-web': () => import('./tools-web/pack.ts'),
  permissions: () => import('./permissions/pack.ts'),
  agent: () => import('./agent/pack.ts'),
  compaction: () => import('./compaction/pack.ts'),
  tasks: () => import('./tasks/pack.ts'),
  cron: () => import('./cron/pack.ts'),
  instructions: () => import('./instructions/pack.ts'),
  skills: () => import('./skills/pack.ts'),
  plugins: () => import('./plugins/pack.ts'),
  capabilities: () => import('./capabilities/pack.ts'),
  mcp: () => import('./mcp/pack.ts'),
  'mcp-v2': () => import('./mcp-v2/pack.ts'),
  'request-repair': () => import('./request-repair/pack.ts'),
  subagents: () => import('./subagents/pack.ts'),
  goals: () => import('./goals/pack.ts'),
  'user-hooks': () => import('./user-hooks/pack.ts'),
  plan: () => import('./plan/pack.ts'),
  questions: () => import('./questions/pack.ts'),
  todo: () => import('./todo/pack.ts'),
  prompts: () => import('./prompts/pack.ts'),
  media: () => import('./media/pack.ts'),
  messages: () => import('./messages/pack.ts'),
  'session-views': () => import('./session-views/pack.ts'),
  transcript: () => import('./transcript/pack.ts'),
  undo: () => import('./undo/pack.ts'),
  terminals: () => import('./terminals/pack.ts'),
  watch: () => import('./watch/pack.ts'),
  search: () => import('./search/pack.ts'),
  fork: () => import('./fork/pack.ts'),
  titles: () => import('./titles/pack.ts'),
  export: () => import('./export/pack.ts')
}

/** The model of `--demo`: no key, no network. */
export const demoPacks: Readonly<Record<string, Loader>> = {
  'demo-model': () => import('../examples/demo-model/pack.ts')
}

/** Deployment options of the full server; those of the operator win. Packs that are put together in another way go without. */
export const defaultConfig: Readonly<Record<string, object>> = {
  catalog: { directory: 'https://models.dev' }
}

/**
 * Loads the default packs but the disabled ones. They are released together: each reports the product's `version`. Never rejects: a pack
 * whose module cannot be loaded is there and fails with the reason.
 */
export async function loadDefaultPacks(disabled: readonly string[] = [], version?: string, loaders = defaultPacks): Promise<Pack[]> {
  const wanted = Object.keys(loaders).filter(name => !disabled.includes(name))
  const packs = await Promise.all(wanted.map(name => loadDefaultPack(name, loaders)))
  return version === undefined ? packs : packs.map(pack => ({ ...pack, version }))
}

/** One default pack, also a disabled one; as a pack that fails when its module cannot be loaded. */
export async function loadDefaultPack(name: string, loaders = defaultPacks): Promise<Pack> {
  try {
    return (await loaders[name]!()).default
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause)
    const broken = new Error(`the module of the pack could not be loaded: ${text}`, { cause })
    return { ...definePack({ name, setup: () => undefined }), broken }
  }
}
