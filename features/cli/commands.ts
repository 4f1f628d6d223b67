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
  /** Options that this form alone takes, beside those of the command. */
  readonly flags?: readonly FlagName[]
}

export interface CommandSpec {
  readonly help: string
  readonly forms: readonly Form[]
  /** Options that every form takes. */
  readonly flags: readonly FlagName[]
  /** Shown below the options. */
  readonly notes?: string
  /** Lines as they are typed, each with what it does. */
  readonly examples: readonly (readonly [line: string, what: string])[]
}

/** Every option that a command, or one of its forms, takes. */
export function flagsOf({ flags, forms }: CommandSpec, form?: Form): readonly FlagName[] {
  return [...new Set([...(form ? [form] : forms).flatMap(one => one.flags ?? []), ...flags])]
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
  load = ["./my-pack.mjs"]
  disable = ["tools-shell"]
  require = ["agent"]
  isolate = ["my-pack"]              runs in a process of its own
  [packs.replace]                    a service of a default pack is provided by the named pack instead
  permissions = "my-pack"
  [packs.config.interactions]
  approval_ttl_ms = 3600000`,
    examples: [
      ['svc-code', 'listen on 127.0.0.1:58627'],
      ['svc-code --demo', 'with a model that needs no key and no network'],
      ['svc-code --port 0 --home ./trial', 'on any free port, with its data in ./trial'],
      ['svc-code --pack ./hello.mjs --disable tools-shell', 'with a pack of your own, and without one of ours']
    ]
  },
  run: {
    help: 'send a prompt and stream the answer',
    forms: [{ verb: '', args: ['[prompt...]'], help: 'send a prompt in a new session, or with --session in one that is there' }],
    flags: ['yes', 'json', 'model', 'cwd', 'session', 'demo', 'offline', 'log-level', ...packs, ...own],
    notes: runNotes,
    examples: [
      ['svc-code run --demo --yes "list the files then run date"', 'try it without a key'],
      ['svc-code run "what does this project do?"', 'in this directory, with the default model'],
      ['svc-code run --session 1f2e "and its tests?"', 'go on with a session'],
      ['git diff | svc-code run --json - | tail -n 1', 'a prompt from a pipe; the outcome as JSON']
    ]
  },
  attach: {
    help: 'follow a session and talk to it',
    forms: [{ verb: '', args: ['<session>'], help: 'show its last messages, follow it, and send what is typed or piped as prompts' }],
    flags: ['yes', 'json', ...own],
    notes:
      'Needs a running server. An end of the input (Ctrl+D) or Ctrl+C leaves; what runs goes on. Of a pipe each line is a prompt: it leaves when\nthey are over, with exit code 1 when one was not completed. The id may be shortened to what is unique.',
    examples: [
      ['svc-code attach 1f2e', 'follow a session and talk to it'],
      ['svc-code attach --json 1f2e', 'every event as a line of JSON']
    ]
  },
  sessions: {
    help: 'list, show, archive, export or delete sessions',
    forms: [
      { verb: 'list', help: 'sessions of this home, the newest first', flags: ['all', 'json'] },
      { verb: 'show', args: ['<session>'], help: 'facts of one session', flags: ['json'] },
      { verb: 'archive', args: ['<session...>'], help: 'hide sessions; running work ends' },
      { verb: 'restore', args: ['<session...>'], help: 'show archived sessions again' },
      { verb: 'export', args: ['<session>', '[file]'], help: 'write a session with its files to a zip archive, without secrets' },
      { verb: 'rm', args: ['<session...>'], help: 'delete sessions with all their data, for good', flags: ['yes'] }
    ],
    flags: own,
    notes:
      'A session id may be shortened to what is unique, with or without session_ in front. rm asks at the terminal, unless --yes is given.',
    examples: [
      ['svc-code sessions', 'list them'],
      ['svc-code sessions list --all --json', 'archived ones as well, as JSON'],
      ['svc-code sessions export 1f2e ./session.zip', 'one with its files, without secrets'],
      ['svc-code sessions rm 1f2e', 'delete one, after a question']
    ]
  },
  login: {
    help: 'log in to the managed account, or store the key of a provider',
    forms: [
      { verb: '', args: ['[provider]'], help: 'without a word the managed account; else a provider of the model directory, by its key' }
    ],
    flags: ['key', 'model', ...own],
    notes: `The key is asked for at the terminal, or read from the standard input: echo $KEY | svc-code login <provider> --key
With --model that model of the provider becomes the default one; without it, one of them where there is no default yet.`,
    examples: [
      ['svc-code login', 'the managed account, in the browser'],
      ['echo $KEY | svc-code login anthropic --key', 'a provider, by its key']
    ]
  },
  models: {
    help: 'list the configured models, or choose the default',
    forms: [
      { verb: 'list', help: 'models with their provider and size; * is the default', flags: ['json'] },
      { verb: 'use', args: ['<alias>'], help: 'make a model the default' }
    ],
    flags: own,
    examples: [
      ['svc-code models', 'list them'],
      ['svc-code models use openai/gpt-6.1-sol', 'an alias of that list']
    ]
  },
  config: {
    help: 'read or change the configuration',
    forms: [
      { verb: 'get', args: ['[key]'], help: 'the effective configuration, or one value of it: subagent.timeout_ms' },
      { verb: 'set', args: ['<key>', '<value>'], help: 'write a value to config.toml: JSON, or a text' }
    ],
    flags: ['json', ...own],
    notes: 'Keys as in config.toml, dots between their words; quotes around a word with dots: models."work/large-1".max_context_size',
    examples: [
      ['svc-code config get default_permission_mode', 'one value'],
      ['svc-code config set default_permission_mode manual', 'write one; a running server follows'],
      ['svc-code config get --json', 'all of it']
    ]
  },
  status: {
    help: 'running servers of this home, and whether a model is ready',
    forms: [{ verb: '', help: 'exit code 0 when a server runs, else 1' }],
    flags: ['json', ...own],
    examples: [['svc-code status', 'address, pid, sessions, model']]
  },
  stop: {
    help: 'stop the running server',
    forms: [{ verb: '', args: ['[port]'], help: 'stop the server of this home; of several the one on this port, or --all' }],
    flags: ['all', ...own],
    examples: [
      ['svc-code stop', 'the one that runs'],
      ['svc-code stop 58628', 'of several the one on this port']
    ]
  },
  open: {
    help: 'open the web page of the running server',
    forms: [{ verb: '', help: 'open it in the browser; without a browser print its address, which carries the token' }],
    flags: own,
    examples: [['svc-code open', 'when a pack serves a page at /']]
  },
  logs: {
    help: 'show the log of this home',
    forms: [{ verb: '', help: 'the last lines of the log, readable' }],
    flags: ['follow', 'lines', 'log-level', 'json', ...own],
    notes: '--log-level leaves out what is below it. --json prints the lines as they are in the file.',
    examples: [
      ['svc-code logs -n 20', 'the last twenty lines'],
      ['svc-code logs --follow --log-level warn', 'go on, warnings and errors only']
    ]
  },
  doctor: {
    help: 'check home, configuration, providers, packs, MCP servers and network',
    forms: [{ verb: '', help: 'every check; exit code 1 when one of them fails' }],
    flags: ['network', 'offline', 'json', ...packs, ...own],
    notes:
      'Every configured provider is asked once, with its credential, for nothing that costs. --network only lists whom packs may call.',
    examples: [
      ['svc-code doctor', 'what is wrong here, with the remedy'],
      ['svc-code doctor --offline', 'ask nobody'],
      ['svc-code doctor --network', 'whom would it call?']
    ]
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
        help: 'a server with the pack and the demo model, on any free port without --port; the pack is swapped at every change',
        flags: ['port', 'offline', 'log-level', 'disable']
      },
      {
        verb: 'add',
        args: ['<path|package|tarball>'],
        help: 'load a pack from now on, in a process of its own, also in the running server',
        flags: ['in-process']
      },
      { verb: 'remove', args: ['<pack>'], help: 'undo that' },
      { verb: 'load', args: ['<pack>'], help: 'bring a pack of the running server up, until it stops' },
      { verb: 'unload', args: ['<pack>'], help: 'take a pack of the running server out, until it stops' },
      {
        verb: 'reload',
        args: ['<pack>'],
        help: 'unload and load; the file of a third-party pack is read anew, and changes nothing if it cannot be used'
      }
    ],
    flags: own,
    notes: 'Exit code 1 when a check, a test or the pack failed. Packages and tarballs are installed with npm into <home>/pack-modules.',
    examples: [
      ['svc-code pack new ../weather', 'a pack to begin with'],
      ['svc-code pack test', 'the pack of this directory'],
      ['svc-code pack check ./hello.mjs', 'the pack of a file'],
      ['svc-code pack dev --port 58700', 'try it while you write it'],
      ['svc-code pack add ./svc-code-weather-0.1.0.tgz', 'for good'],
      ['svc-code pack unload tools-web', 'out of the running server, until it stops']
    ]
  },
  packs: {
    help: 'packs with state, version, options and why they are not active',
    forms: [
      {
        verb: '',
        args: ['[pack]'],
        help: 'all packs, or one with its options: asks the running server; without one, what it would load. Starts and makes nothing. Exit code 1 when a pack failed, or a name in [packs] stops every start'
      }
    ],
    flags: ['json', ...packs, ...own],
    examples: [
      ['svc-code packs', 'all of them'],
      ['svc-code packs interactions', 'one with its options']
    ]
  },
  token: {
    help: 'print the token, or replace it',
    forms: [
      { verb: 'show', help: 'print the token. Starts and makes nothing' },
      { verb: 'rotate', help: 'replace it; a running server follows at once and ends what the old one opened' }
    ],
    flags: own,
    examples: [
      ['curl -H "Authorization: Bearer $(svc-code token)" http://127.0.0.1:58627/api/v1/meta', 'a request by hand'],
      ['svc-code token rotate', 'somebody has seen it']
    ]
  },
  instances: {
    help: 'running servers of this home',
    forms: [{ verb: '', help: 'one line for each' }],
    flags: ['json', ...own],
    examples: [['svc-code instances --json', 'port, pid and start of each']]
  },
  completion: {
    help: 'completion for a shell',
    forms: [
      { verb: 'bash', help: 'for ~/.bashrc' },
      { verb: 'zsh', help: 'for ~/.zshrc' },
      { verb: 'fish', help: 'for ~/.config/fish/config.fish' }
    ],
    flags: ['help'],
    examples: [
      ['eval "$(svc-code completion bash)"', 'zsh alike'],
      ['svc-code completion fish | source', 'fish']
    ]
  },
  help: {
    help: 'help for a command',
    forms: [{ verb: '', args: ['[command]', '[form]'], help: 'all commands, one of them, or one form of it' }],
    flags: ['help'],
    examples: [
      ['svc-code help run', 'as svc-code run --help'],
      ['svc-code help pack dev', 'as svc-code pack dev --help']
    ]
  }
} as const satisfies Record<string, CommandSpec>

export type CommandName = keyof typeof commands

export const commandSpecs: Readonly<Record<CommandName, CommandSpec>> = commands
