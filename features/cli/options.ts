/** The command line as data: commands, flags, help text, and errors that say what would have been right. */
import { parseArgs } from 'node:util'
import { nearest } from '../../kernel/spelling.ts'

export type Command = 'serve' | 'token' | 'packs' | 'instances' | 'doctor' | 'help' | 'version'

interface Flag {
  readonly type: 'string' | 'boolean'
  readonly multiple?: boolean
  readonly short?: string
  readonly value?: string
  readonly help: string
}

export const flags = {
  host: { type: 'string', value: 'address', help: 'address to listen on (default 127.0.0.1)' },
  port: {
    type: 'string',
    value: 'number',
    help: 'port; 0 takes any (default 58627, or the next free one; a port given here must be free)'
  },
  home: { type: 'string', value: 'dir', help: 'home directory (default ~/.svc-code, or SVC_CODE_HOME)' },
  'log-level': { type: 'string', value: 'level', help: 'trace, debug, info, warn, error or silent (default info, to <home>/logs)' },
  'dangerous-bypass-auth': { type: 'boolean', help: 'serve everything without a token' },
  'allow-remote-shutdown': { type: 'boolean', help: 'keep POST /api/v1/shutdown on non-loopback binds' },
  'debug-endpoints': { type: 'boolean', help: 'allow packs to mount debug routes (loopback only)' },
  'insecure-no-tls': { type: 'boolean', help: 'allow a non-loopback bind without TLS' },
  'allowed-host': {
    type: 'string',
    multiple: true,
    value: 'host',
    help: 'accept this Host header; a leading dot takes subdomains (repeatable)'
  },
  'cors-origin': { type: 'string', multiple: true, value: 'origin', help: 'accept this browser origin (repeatable)' },
  demo: { type: 'boolean', help: 'with a demo model that needs no key and no network; the default when none is configured' },
  offline: { type: 'boolean', help: 'call nobody but configured providers on this machine' },
  network: { type: 'boolean', help: 'with doctor: every host that packs may call' },
  pack: { type: 'string', multiple: true, value: 'path|module', help: 'load a further pack (repeatable)' },
  disable: { type: 'string', multiple: true, value: 'pack', help: 'leave a pack out (repeatable)' },
  require: { type: 'string', multiple: true, value: 'pack', help: 'refuse to start unless this pack is active (repeatable)' },
  help: { type: 'boolean', short: 'h', help: 'show this text' },
  version: { type: 'boolean', short: 'v', help: 'show the version' }
} as const satisfies Record<string, Flag>

export type FlagName = keyof typeof flags
export type FlagValues = {
  readonly [K in FlagName]?: (typeof flags)[K] extends { multiple: true }
    ? string[]
    : (typeof flags)[K] extends { type: 'string' }
      ? string
      : boolean
}

export interface CommandLine {
  readonly command: Command
  /** Words after the command: `rotate`. */
  readonly words: readonly string[]
  readonly flags: FlagValues
}

/** A command line that cannot be understood; the text says what would have been right. Exit code 2. */
export class UsageError extends Error {}

const shortNames: readonly string[] = Object.values<Flag>(flags).flatMap(flag => flag.short ?? [])
const commands: Readonly<Record<string, Command>> = {
  serve: 'serve',
  token: 'token',
  packs: 'packs',
  instances: 'instances',
  doctor: 'doctor',
  help: 'help'
}
export const logLevels: readonly string[] = ['trace', 'debug', 'info', 'warn', 'error', 'silent']

export function parseCommandLine(args: readonly string[]): CommandLine {
  for (const arg of args) {
    if (arg === '--') break
    const name = /^--?([^=]+)/.exec(arg)?.[1]
    if (name !== undefined && !(arg.startsWith('--') ? Object.hasOwn(flags, name) : shortNames.includes(name)))
      throw new UsageError(`unknown option ${arg.split('=', 1)[0]}.${suggestion(name, Object.keys(flags), '--')}`)
  }
  let parsed: { values: FlagValues; positionals: string[] }
  try {
    const options: Record<string, { type: 'string' | 'boolean'; multiple?: boolean; short?: string }> = {}
    for (const [name, flag] of Object.entries(flags) as [string, Flag][]) {
      options[name] = { type: flag.type, ...(flag.multiple ? { multiple: true } : {}), ...(flag.short ? { short: flag.short } : {}) }
    }
    parsed = parseArgs({ args: [...args], options, allowPositionals: true, strict: true }) as typeof parsed
  } catch (error) {
    throw new UsageError(`${explained(error as Error)}\nsvc-code --help lists the options.`)
  }
  const [word = 'serve', ...words] = parsed.positionals
  if (parsed.values.help) return { command: 'help', words, flags: parsed.values }
  if (parsed.values.version) return { command: 'version', words, flags: parsed.values }
  const command = commands[word]
  if (!command) throw new UsageError(`unknown command '${word}'.${suggestion(word, Object.keys(commands), '')}`)
  check(command, words, parsed.values)
  return { command, words, flags: parsed.values }
}

/** The parser's complaint in our words where it is about a value. */
function explained(error: Error): string {
  const name = /'(?:-\w, )?--([a-z-]+)/.exec(error.message)?.[1] ?? ''
  const flag = (flags as Readonly<Record<string, Flag>>)[name]
  if (!flag) return error.message.split('\n', 1)[0] ?? ''
  return flag.type === 'boolean' ? `--${name} takes no value.` : `--${name} needs a value: --${name} <${flag.value}>.`
}

function check(command: Command, words: readonly string[], values: FlagValues): void {
  const allowed = command === 'token' ? ['rotate'] : []
  const odd = words.find((word, at) => at > 0 || !allowed.includes(word))
  if (odd !== undefined) {
    throw new UsageError(
      `'${odd}' does not belong here: svc-code ${command}${allowed.length > 0 ? ` [${allowed.join('|')}]` : ' takes no further words'}.`
    )
  }
  if (command === 'doctor' && !values.network) throw new UsageError('doctor needs a subject: svc-code doctor --network.')
  if (command !== 'doctor' && values.network) throw new UsageError('--network belongs to doctor: svc-code doctor --network.')
  if (values.port !== undefined && !(/^\d{1,5}$/.test(values.port) && Number(values.port) <= 65_535)) {
    throw new UsageError(`--port ${values.port} is not a port: give a number from 0 to 65535.`)
  }
  const level = values['log-level']
  if (level !== undefined && !logLevels.includes(level)) {
    throw new UsageError(`--log-level ${level} is unknown: give one of ${logLevels.join(', ')}.`)
  }
  for (const origin of values['cors-origin'] ?? []) {
    if (!URL.canParse(origin) || new URL(origin).origin !== origin) {
      throw new UsageError(`--cors-origin ${origin} is not an origin: give scheme, host and port only, such as https://app.example:8443.`)
    }
  }
}

/** Throws a UsageError for a pack name (of --disable, --require or config.toml) that nobody has: a typing error would go unnoticed. */
export function checkPackNames(option: 'disable' | 'require', names: readonly string[], known: readonly string[]): void {
  const odd = names.find(name => !known.includes(name))
  if (odd === undefined) return
  throw new UsageError(`unknown pack '${odd}' in --${option} or [packs] ${option}.${suggestion(odd, known, '')}`)
}

function suggestion(given: string, known: readonly string[], prefix: string): string {
  const best = nearest(given, known, Math.max(2, Math.floor(given.length / 3)))
  return best === undefined ? ` Known: ${known.map(name => prefix + name).join(', ')}.` : ` Did you mean ${prefix}${best}?`
}

export function helpText(version: string): string {
  const shown = (Object.entries(flags) as [string, Flag][]).map(([name, flag]) => {
    const left = `  ${flag.short ? `-${flag.short}, ` : ''}--${name}${flag.value ? ` <${flag.value}>` : ''}`
    return `${left.padEnd(34)} ${flag.help}`
  })
  return `svc-code ${version}: the local server of a coding agent

usage
  svc-code [serve] [options]         start the server
  svc-code token [rotate]            print the token, or replace it (a running server follows)
  svc-code packs                     packs with state, version and why they are not active
  svc-code instances                 running servers of this home
  svc-code doctor --network          hosts that packs may call, and which of them the offline switch refuses

options
${shown.join('\n')}

environment
  SVC_CODE_HOME                      home directory
  SVC_CODE_PASSWORD                  password accepted beside the token
  SVC_CODE_ALLOWED_HOSTS             like --allowed-host, comma separated
  SVC_CODE_CORS_ORIGINS              like --cors-origin, comma separated
  SVC_CODE_DISABLE_HOST_CHECK=1      accept any Host header
  SVC_CODE_LOG_LEVEL                 like --log-level
  SVC_CODE_OFFLINE=1                 like --offline; offline = true in config.toml does it, too
  SVC_CODE_CATALOG_URL               model directory, asked when a client wants it (default https://models.dev; off: the built-in one)
  SVC_CODE_MODEL_NAME, _API_KEY, _BASE_URL
                                     a default model without a configuration file (features/llm/README.md has the rest)
  SVC_CODE_EXPERIMENTAL_<ID>         switch an experimental feature on (1) or off (0)
  Further variables of a pack stand in its README, features/<pack>/README.md.

Packs per deployment can also stand in <home>/config.toml:
  [packs]
  load = ["./my-pack.js"]
  disable = ["tools-shell"]
  require = ["agent"]
  [packs.replace]                    a service of a default pack is provided by the named pack instead
  permissions = "my-pack"
  [packs.config.interactions]
  approval_ttl_ms = 3600000
`
}
