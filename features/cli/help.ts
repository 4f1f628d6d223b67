/** Help texts: all commands, or one with its words and options. */
import { type CommandName, type CommandSpec, commandSpecs, type Form, flagsOf, type Runner } from './commands.ts'
import { type Flag, type FlagName, flags } from './flags.ts'
import { commandOf, formNamed, UsageError, usageOf } from './options.ts'
import { productVersion } from './version.ts'

export const help: Runner = async ({ words: [word, verb] }, { out }) => {
  if (word === undefined) {
    out(helpText(productVersion()))
    return 0
  }
  const command = commandOf(word)
  if (verb !== undefined && !formNamed(command, verb)) throw new UsageError(`svc-code ${command} has no form '${verb}'.`)
  out(commandHelp(command, verb))
  return 0
}

/** What `svc-code --help` prints. */
export function helpText(version: string): string {
  const rows = Object.entries(commandSpecs).map(([name, spec]) => `  ${name.padEnd(12)} ${spec.help}`)
  return `svc-code ${version}: the local server of a coding agent

usage
  svc-code [command] [options]       in a checkout: npx svc-code
  svc-code <command> --help          its words, options and examples

commands
${rows.join('\n')}

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
`
}

/** What `svc-code <command> --help` prints; with `verb` of that form alone. */
export function commandHelp(command: CommandName, verb?: string): string {
  const spec: CommandSpec = commandSpecs[command]
  const form = formNamed(command, verb)
  const forms = form ? [form] : spec.forms
  const usage = forms.map(one => helpLine(`${usageOf(command, one)}${one.verb === '' || form ? ' [options]' : ''}`, one.help))
  const some = (head: string, names: readonly FlagName[]) => [`\n${head}`, ...names.map(name => optionLine(name, flags[name]))]
  const options = form
    ? some('options', flagsOf(spec, form))
    : [
        ...spec.forms.flatMap(one => (one.flags ? some(`options of ${wordsOf(command, one)}`, one.flags) : [])),
        ...some('options', spec.flags)
      ]
  const own = spec.examples.filter(([line]) => !form || line.includes(`svc-code ${wordsOf(command, form)}`))
  const examples = own.length === 0 ? [] : ['\nexamples', ...own.map(([line, what]) => helpLine(line, what))]
  const notes = spec.notes === undefined ? [] : [`\n${spec.notes}`]
  const head = form ? [] : [`svc-code ${command}: ${spec.help}\n`]
  return `${[...head, 'usage', ...usage, ...options, ...notes, ...examples].join('\n')}\n`
}

const wordsOf = (command: CommandName, { verb }: Form) => (verb === '' ? command : `${command} ${verb}`)

function helpLine(left: string, help: string): string {
  return left.length > 36 ? `  ${left}\n${' '.repeat(38)} ${help}` : `  ${left.padEnd(36)} ${help}`
}

function optionLine(name: FlagName, flag: Flag): string {
  return helpLine(`${flag.short ? `-${flag.short}, ` : ''}--${name}${flag.value ? ` <${flag.value}>` : ''}`, flag.help)
}
