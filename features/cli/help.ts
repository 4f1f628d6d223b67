/** Help texts: all commands, or one with its words and options. */
import { type CommandName, type CommandSpec, commandSpecs, type Runner } from './commands.ts'
import { type Flag, type FlagName, flags } from './flags.ts'
import { commandOf, usageOf } from './options.ts'
import { productVersion } from './version.ts'

export const help: Runner = async ({ words: [word] }, { out }) => {
  out(word === undefined ? helpText(productVersion()) : commandHelp(commandOf(word)))
  return 0
}

/** What `svc-code --help` prints. */
export function helpText(version: string): string {
  const rows = Object.entries(commandSpecs).map(([name, spec]) => `  ${name.padEnd(12)} ${spec.help}`)
  return `svc-code ${version}: the local server of a coding agent

usage
  svc-code [command] [options]       in a checkout: npx svc-code
  svc-code <command> --help          words and options of a command

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

/** What `svc-code <command> --help` prints. */
export function commandHelp(command: CommandName): string {
  const spec: CommandSpec = commandSpecs[command]
  const forms = spec.forms.map(form => {
    const words = form.verb === '' ? `${usageOf(command, form)} [options]` : usageOf(command, form)
    return words.length > 36 ? `  ${words}\n${' '.repeat(38)} ${form.help}` : `  ${words.padEnd(36)} ${form.help}`
  })
  const options = spec.flags.map(name => optionLine(name, flags[name]))
  const notes = spec.notes === undefined ? '' : `\n${spec.notes}\n`
  return `svc-code ${command}: ${spec.help}\n\nusage\n${forms.join('\n')}\n\noptions\n${options.join('\n')}\n${notes}`
}

function optionLine(name: FlagName, flag: Flag): string {
  const left = `  ${flag.short ? `-${flag.short}, ` : ''}--${name}${flag.value ? ` <${flag.value}>` : ''}`
  return `${left.padEnd(38)} ${flag.help}`
}
