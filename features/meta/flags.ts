/** Experimental flags: known ids with their defaults, overridden by configuration and then by the environment. */

const defaults: Readonly<Record<string, boolean>> = {
  wait_for: false,
  auto_session_title: false,
  'secondary-model': false,
  subagent_fork: false,
  'tool-select': false
}

/** Environment: `SVC_CODE_EXPERIMENTAL_FLAG` for all, `SVC_CODE_EXPERIMENTAL_<ID>` for one (upper case, `-` as `_`); 1/true or 0/false. */
export function experimentalFlags(configured: Readonly<Record<string, boolean>>, env: NodeJS.ProcessEnv): Record<string, boolean> {
  const all = truth(env.SVC_CODE_EXPERIMENTAL_FLAG)
  const flags: Record<string, boolean> = {}
  for (const id of new Set([...Object.keys(defaults), ...Object.keys(configured)])) {
    const one = truth(env[`SVC_CODE_EXPERIMENTAL_${id.toUpperCase().replaceAll('-', '_')}`])
    flags[id] = all ?? one ?? configured[id] ?? defaults[id] ?? false
  }
  return flags
}

function truth(value: string | undefined): boolean | undefined {
  if (value === '1' || value === 'true') return true
  if (value === '0' || value === 'false') return false
  return undefined
}
