/** Surroundings of a command: which shell, which variables. */
import { accessSync, constants } from 'node:fs'
import { isSecretName, redactText } from '../../kernel/index.ts'
import { matchText } from '../tools/index.ts'
import { MARK } from './strays.ts'

/** `/bin/bash` where it exists, else `/bin/sh`, else `sh` from PATH. */
export function findShell(): string {
  for (const path of ['/bin/bash', '/usr/bin/bash', '/bin/sh']) {
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // try the next place
    }
  }
  return 'sh'
}

/** Variables of the server that hold credentials by their purpose. */
const credentials = /^SVC_CODE_.*(?:KEY|TOKEN|PASSWORD|SECRET|HEADERS)/
/** Keys of a record whose values are secrets. */
const secretKeys: readonly string[] = ['api_key', 'custom_headers']
/** A shorter value may stand in any variable by chance. */
const MIN_CHARS = 8

/** Says of variables whether commands must not get them. */
export type Hidden = (name: string, value: string) => boolean

/**
 * Hides the server's own secrets, also those inside its URLs; what holds a secret of these records (providers, models, services of the
 * configuration) or has the name of a key in their `env` tables; and the given names, `*` as wildcard.
 */
export function hiddenFrom(records: readonly unknown[], names: readonly string[]): Hidden {
  const secrets = new Set<string>()
  const keys = new Set<string>()
  for (const record of records) collect(record, { secrets, keys })
  return (name, value) =>
    (name.startsWith('SVC_CODE_') && (credentials.test(name) || redactText(value) !== value)) ||
    keys.has(name) ||
    names.some(pattern => matchText(pattern, name)) ||
    [...secrets].some(secret => value.includes(secret))
}

interface Found {
  readonly secrets: Set<string>
  readonly keys: Set<string>
}

function collect(value: unknown, found: Found, secret = false): void {
  if (typeof value === 'string') {
    if (secret && value.length >= MIN_CHARS) found.secrets.add(value)
    return
  }
  if (typeof value !== 'object' || value === null) return
  for (const [key, inner] of Object.entries(value)) {
    if (key !== 'env') collect(inner, found, secret || secretKeys.includes(key))
    else if (typeof inner === 'object' && inner !== null) collectTable(inner, found)
  }
}

/** A table `env` holds keys beside plain names of projects and regions. */
function collectTable(table: object, found: Found): void {
  for (const [name, value] of Object.entries(table)) {
    if (!isSecretName(name)) continue
    found.keys.add(name)
    collect(value, found, true)
  }
}

/** The server's environment without what is hidden, made for commands that nobody watches. */
export function commandEnv(base: NodeJS.ProcessEnv, hidden: Hidden, shell: string, mark: string): NodeJS.ProcessEnv {
  const env = Object.fromEntries(Object.entries(base).filter(([name, value]) => !hidden(name, value ?? '')))
  env[MARK] = [base[MARK], mark].filter(Boolean).join(' ')
  // A bash with a socket as its input that counts itself as the outermost takes itself for one behind rsh, and runs ~/.bashrc.
  env.SHLVL = String(Math.max(1, Number.parseInt(env.SHLVL ?? '', 10) || 1))
  return { ...env, NO_COLOR: '1', TERM: 'dumb', GIT_TERMINAL_PROMPT: base.GIT_TERMINAL_PROMPT ?? '0', SHELL: shell }
}
