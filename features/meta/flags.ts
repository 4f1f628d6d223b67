/** Experimental flags: every known id, with what configuration and environment say about it (contract 1, meta). */
import { type Config, experimentalSection } from '../config/index.ts'

const known = ['wait_for', 'auto_session_title', 'secondary-model', 'subagent_fork', 'tool-select']

/** All flags are off by default. Without the config pack the environment still counts (`SVC_CODE_EXPERIMENTAL_<ID>`). */
export function experimentalFlags(config: Config | undefined, env: NodeJS.ProcessEnv): Record<string, boolean> {
  const set = config ? config.get(experimentalSection) : experimentalSection.overlay?.(env)
  return { ...Object.fromEntries(known.map(id => [id, false])), ...(set as Record<string, boolean> | undefined) }
}
