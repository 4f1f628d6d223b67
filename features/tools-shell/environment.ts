/** Surroundings of a command: which shell, which variables. */
import { accessSync, constants } from 'node:fs'
import { redactText } from '../../kernel/index.ts'
import { MARK } from './strays.ts'

/** `/bin/bash` where it exists, else `sh` from PATH. */
export function findShell(): string {
  for (const path of ['/bin/bash', '/usr/bin/bash']) {
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

/** The server's environment without its own secrets, also those inside its URLs, made for commands that nobody watches. */
export function commandEnv(base: NodeJS.ProcessEnv, shell: string, mark: string): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {}
  for (const [name, value] of Object.entries(base)) {
    const own = name.startsWith('SVC_CODE_')
    if (!own || !(credentials.test(name) || redactText(value ?? '') !== value)) env[name] = value
  }
  env[MARK] = [base[MARK], mark].filter(Boolean).join(' ')
  return { ...env, NO_COLOR: '1', TERM: 'dumb', GIT_TERMINAL_PROMPT: base.GIT_TERMINAL_PROMPT ?? '0', SHELL: shell }
}
