/** The commands as data: their words, options and one line of help. */
import type { FlagName, FlagValues } from './flags.ts'
import type { Io } from './io.ts'

export interface CommandLine {
  readonly command: CommandName
  /** The form that was chosen: `rotate`; '' for a command without forms. */
  readonly verb: string
  /** Words after command and verb. */
  readonly words: readonly string[]
  readonly flags: FlagValues
}

/** Resolves to the exit code. */
export type Runner = (line: CommandLine, io: Io) => Promise<number>

export interface Form {
  /** First word; '' when the command has none. The first form is the one that no word chooses. */
  readonly verb: string
  /** `<needed>`, `[optional]`; the last one may be repeated: `<name...>`. */
  readonly args?: readonly string[]
  readonly help: string
}

export interface CommandSpec {
  readonly help: string
  readonly forms: readonly Form[]
  readonly flags: readonly FlagName[]
  /** Shown below the options. */
  readonly notes?: string
}

const packs: readonly FlagName[] = ['pack', 'disable', 'require']
const own: readonly FlagName[] = ['home', 'help']

const runNotes = `Text of the agent goes to the standard output, everything else to the standard error. Without a prompt the standard input is read.
Without --model it is that of the session, else the default one.
When no server runs on the home, one is started for this command and stopped with it. What needs an approval is asked at the terminal; without one
it is rejected, unless --yes is given. Ctrl+C aborts the turn, a second one leaves at once. With --json every event is a line of JSON, and the last
line is the outcome: {"type":"outcome","session_id","reason","text","exit_code"}.

exit codes
  0    the turn completed
  1    it failed, or could not begin
  2    the command line was not understood
  3    the prompt was blocked by a hook
  4    the turn completed, but something was not allowed because nobody could be asked
  130  it was cancelled`

const commands = {
  serve: {
    help: 'start the server (the default)',
    forms: [{ verb: '', help: 'start the server and keep it running' }],
    flags: [
      'host',
      'port',
      'demo',
      'offline',
      'log-level',
      ...packs,
      'allowed-host',
      'cors-origin',
      'insecure-no-tls',
      'allow-remote-shutdown',
      'dangerous-bypass-auth',
      'debug-endpoints',
      ...own
    ],
    notes: `Packs per deployment can also stand in <home>/config.toml:
  [packs]
  load = ["./my-pack.js"]
  disable = ["tools-shell"]
  require = ["agent"]
  isolate = ["my-pack"]              runs in a process of its own
  [packs.replace]                    a service of a default pack is provided by the named pack instead
  permissions = "my-pack"
  [packs.config.interactions]
  approval_ttl_ms = 3600000`
  },
  run: {
    help: 'send a prompt and stream the answer',
    forms: [{ verb: '', args: ['[prompt...]'], help: 'send a prompt in a new session, or with --session in one that is there' }],
    flags: ['yes', 'json', 'model', 'cwd', 'session', 'demo', 'offline', 'log-level', ...packs, ...own],
    notes: runNotes
  },
  attach: {
    help: 'follow a session and talk to it',
    forms: [{ verb: '', args: ['<session>'], help: 'show its last messages, follow it, and send what is typed or piped as prompts' }],
    flags: ['yes', 'json', ...own],
    notes:
      'Needs a running server. An end of the input (Ctrl+D) or Ctrl+C leaves; what runs goes on. Of a pipe each line is a prompt: it leaves when\nthey are over, with exit code 1 when one was not completed. The id may be shortened to what is unique.'
  },
  sessions: {
    help: 'list, show, archive, export or delete sessions',
    forms: [
      { verb: 'list', help: 'sessions of this home, the newest first (--all: archived ones, too)' },
      { verb: 'show', args: ['<session>'], help: 'facts of one session' },
      { verb: 'archive', args: ['<session...>'], help: 'hide sessions; running work ends' },
      { verb: 'restore', args: ['<session...>'], help: 'show archived sessions again' },
      { verb: 'export', args: ['<session>', '[file]'], help: 'write a session with its files to a zip archive, without secrets' },
      { verb: 'rm', args: ['<session...>'], help: 'delete sessions with all their data, for good' }
    ],
    flags: ['all', 'json', 'yes', ...own],
    notes:
      'A session id may be shortened to what is unique, with or without session_ in front. rm asks at the terminal, unless --yes is given.'
  },
  login: {
    help: 'log in to the managed account, or store the key of a provider',
    forms: [
      { verb: '', args: ['[provider]'], help: 'without a word the managed account; else a provider of the model directory, by its key' }
    ],
    flags: ['key', 'model', ...own],
    notes: `The key is asked for at the terminal, or read from the standard input: echo $KEY | svc-code login <provider> --key
With --model that model of the provider becomes the default one; without it, one of them where there is no default yet.`
  },
  models: {
    help: 'list the configured models, or choose the default',
    forms: [
      { verb: 'list', help: 'models with their provider and size; * is the default' },
      { verb: 'use', args: ['<alias>'], help: 'make a model the default' }
    ],
    flags: ['json', ...own]
  },
  config: {
    help: 'read or change the configuration',
    forms: [
      { verb: 'get', args: ['[key]'], help: 'the effective configuration, or one value of it: subagent.timeout_ms' },
      { verb: 'set', args: ['<key>', '<value>'], help: 'write a value to config.toml: JSON, or a text' }
    ],
    flags: ['json', ...own],
    notes: 'Keys as in config.toml, dots between their words; quotes around a word with dots: models."work/large-1".max_context_size'
  },
  status: {
    help: 'running servers of this home, and whether a model is ready',
    forms: [{ verb: '', help: 'exit code 0 when a server runs, else 1' }],
    flags: ['json', ...own]
  },
  stop: {
    help: 'stop the running server',
    forms: [{ verb: '', args: ['[port]'], help: 'stop the server of this home; of several the one on this port, or --all' }],
    flags: ['all', ...own]
  },
  open: {
    help: 'open the web page of the running server',
    forms: [{ verb: '', help: 'open it in the browser; without one, print its address, which carries the token' }],
    flags: [...own]
  },
  logs: {
    help: 'show the log of this home',
    forms: [{ verb: '', help: 'the last lines of the log, readable' }],
    flags: ['follow', 'lines', 'log-level', 'json', ...own],
    notes: '--log-level leaves out what is below it. --json prints the lines as they are in the file.'
  },
  doctor: {
    help: 'check home, configuration, providers, packs and network',
    forms: [{ verb: '', help: 'every check; exit code 1 when one of them fails' }],
    flags: ['network', 'offline', 'json', ...packs, ...own],
    notes: 'Every configured provider is asked once, with its credential, for nothing that costs. --network only lists whom packs may call.'
  },
  pack: {
    help: 'write, try, add and remove packs, and switch those of the running server',
    forms: [
      { verb: 'new', args: ['<dir>'], help: 'a working TypeScript pack with a test, an option and an event; named after its directory' },
      { verb: 'check', args: ['[path]'], help: 'import the pack of a file or directory (default: this one) and check what it declares' },
      { verb: 'test', args: ['[path]'], help: 'leaks, bounds, reloads under load, neighbours that go, schemas; then its own test files' },
      {
        verb: 'dev',
        args: ['[path]'],
        help: 'a server with the pack and the demo model, on any free port without --port; the pack is swapped at every change'
      },
      {
        verb: 'add',
        args: ['<path|package|tarball>'],
        help: 'load a pack from now on, in a process of its own, also in the running server'
      },
      { verb: 'remove', args: ['<pack>'], help: 'undo that' },
      { verb: 'load', args: ['<pack>'], help: 'bring a pack of the running server up, until it stops' },
      { verb: 'unload', args: ['<pack>'], help: 'take a pack of the running server out, until it stops' },
      { verb: 'reload', args: ['<pack>'], help: 'unload and load; the file of a third-party pack is read anew' }
    ],
    flags: ['port', 'offline', 'log-level', 'disable', 'in-process', ...own],
    notes: 'Exit code 1 when a check, a test or the pack failed. Packages and tarballs are installed with npm into <home>/pack-modules.'
  },
  packs: {
    help: 'packs with state, version, options and why they are not active',
    forms: [
      {
        verb: '',
        args: ['[pack]'],
        help: 'all packs, or one with its options: asks the running server; without one, what it would load. Starts and makes nothing. Exit code 1 when a pack failed'
      }
    ],
    flags: ['json', ...packs, ...own]
  },
  token: {
    help: 'print the token, or replace it',
    forms: [
      { verb: 'show', help: 'print the token. Starts and makes nothing' },
      { verb: 'rotate', help: 'replace it; a running server follows at once and ends what the old one opened' }
    ],
    flags: [...own]
  },
  instances: {
    help: 'running servers of this home',
    forms: [{ verb: '', help: 'one line for each' }],
    flags: ['json', ...own]
  },
  completion: {
    help: 'completion for a shell',
    forms: [
      { verb: 'bash', help: 'eval "$(svc-code completion bash)"' },
      { verb: 'zsh', help: 'eval "$(svc-code completion zsh)"' },
      { verb: 'fish', help: 'svc-code completion fish | source' }
    ],
    flags: ['help']
  },
  help: {
    help: 'help for a command',
    forms: [{ verb: '', args: ['[command]'], help: 'all commands, or one of them' }],
    flags: ['help']
  }
} as const satisfies Record<string, CommandSpec>

export type CommandName = keyof typeof commands

export const commandSpecs: Readonly<Record<CommandName, CommandSpec>> = commands
