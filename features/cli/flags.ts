/** Every option of the command line; which command takes which stands in `commands.ts`. */
export interface Flag {
  readonly type: 'string' | 'boolean'
  readonly multiple?: boolean
  readonly short?: string
  /** What a value is called in help texts. */
  readonly value?: string
  readonly help: string
}

export const flags = {
  host: { type: 'string', value: 'address', help: 'address to listen on (default 127.0.0.1)' },
  port: {
    type: 'string',
    value: 'number',
    help: 'port (default 58627, of pack dev any free one); of a taken one the next free one, up to 100 further; 0 takes any'
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
  demo: {
    type: 'boolean',
    help: 'with a demo model that needs no key and no network; that of run --demo, else the default when none is configured'
  },
  offline: { type: 'boolean', help: 'call nobody but configured providers on this machine' },
  network: { type: 'boolean', help: 'every host that packs may call, and nothing else' },
  pack: { type: 'string', multiple: true, value: 'path|module', help: 'load a further pack (repeatable)' },
  'in-process': { type: 'boolean', help: 'run the pack in the process of the server, not in one of its own' },
  disable: { type: 'string', multiple: true, value: 'pack', help: 'leave a pack out (repeatable)' },
  require: { type: 'string', multiple: true, value: 'pack', help: 'refuse to start unless this pack is active (repeatable)' },
  json: { type: 'boolean', help: 'JSON instead of text' },
  yes: { type: 'boolean', short: 'y', help: 'do not ask: approve what the agent asks for, delete what rm names' },
  model: { type: 'string', short: 'm', value: 'alias', help: 'model alias' },
  cwd: { type: 'string', short: 'C', value: 'dir', help: 'working directory of the session (default: this one)' },
  session: { type: 'string', short: 's', value: 'id', help: 'go on in this session instead of a new one' },
  all: { type: 'boolean', short: 'a', help: 'all of them' },
  lines: { type: 'string', short: 'n', value: 'number', help: 'how many lines of the past (default 50)' },
  follow: { type: 'boolean', short: 'f', help: 'go on with what comes' },
  key: { type: 'boolean', help: 'ask for an API key, or read it from the standard input' },
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

export const logLevels: readonly string[] = ['trace', 'debug', 'info', 'warn', 'error', 'silent']
