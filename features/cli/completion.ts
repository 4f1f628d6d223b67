/** `svc-code completion <shell>`: scripts made from the table of commands. */
import { type CommandName, type CommandSpec, commandSpecs, flagsOf, type Runner } from './commands.ts'
import { type Flag, flags } from './flags.ts'

export const completion: Runner = async ({ verb }, { out }) => {
  out(({ bash, zsh, fish } as Readonly<Record<string, () => string>>)[verb]?.() ?? '')
  return 0
}

interface Words {
  readonly name: CommandName
  readonly help: string
  readonly verbs: readonly string[]
  readonly options: readonly string[]
}

const all: readonly Words[] = (Object.entries(commandSpecs) as [CommandName, CommandSpec][]).map(([name, spec]) => ({
  name,
  help: spec.help,
  verbs: spec.forms.flatMap(({ verb }) => (verb === '' ? [] : [verb])),
  options: flagsOf(spec).map(flag => `--${flag}`)
}))
const names = all.map(({ name }) => name)
/** Options whose value is a path. */
const paths = ['--home', '--cwd', '--pack']

function bash(): string {
  const cases = all.map(({ name, verbs, options }) => `    ${name}) words="${[...verbs, ...options].join(' ')}" ;;`)
  return `# svc-code completion for bash: eval "$(svc-code completion bash)"
_svc_code() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" command="" words="" at
  case "$before" in ${paths.join('|')}) COMPREPLY=($(compgen -f -- "$current")); return ;; esac
  for ((at = 1; at < COMP_CWORD; at++)); do
    case "\${COMP_WORDS[at]}" in -*) ;; *) command="\${COMP_WORDS[at]}"; break ;; esac
  done
  case "$command" in
${cases.join('\n')}
    *) words="${[...names, ...(all.find(({ name }) => name === 'serve')?.options ?? [])].join(' ')}" ;;
  esac
  [ "$command" = help ] && words="${names.join(' ')}"
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _svc_code svc-code
`
}

function zsh(): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''").replaceAll(':', '\\:')}'`
  const list = all.map(({ name, help }) => `    ${quoted(name)}:${quoted(help)}`.replace("':'", ':'))
  const cases = all.map(({ name, verbs, options }) => `    ${name}) compadd -- ${[...verbs, ...options].join(' ')} ;;`)
  return `#compdef svc-code
# svc-code completion for zsh: eval "$(svc-code completion zsh)"
_svc_code() {
  local -a commands
  commands=(
${list.join('\n')}
  )
  case "\${words[CURRENT-1]}" in ${paths.join('|')}) _files; return ;; esac
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  case "\${words[2]}" in
    help) compadd -- ${names.join(' ')} ;;
${cases.filter(line => !line.trimStart().startsWith('help)')).join('\n')}
  esac
}
compdef _svc_code svc-code
`
}

function fish(): string {
  const quoted = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const lines = ['# svc-code completion for fish: svc-code completion fish | source', 'complete -c svc-code -f']
  for (const { name, help, verbs } of all) {
    lines.push(`complete -c svc-code -n __fish_use_subcommand -a ${name} -d ${quoted(help)}`)
    const here = `-n '__fish_seen_subcommand_from ${name}'`
    if (verbs.length > 0) lines.push(`complete -c svc-code ${here} -a ${quoted(verbs.join(' '))}`)
    for (const flag of flagsOf(commandSpecs[name])) {
      const { short, value, help: text }: Flag = flags[flag]
      const needs = value === undefined ? '' : paths.includes(`--${flag}`) ? ' -r -F' : ' -x'
      lines.push(`complete -c svc-code ${here} -l ${flag}${short ? ` -s ${short}` : ''}${needs} -d ${quoted(text)}`)
    }
  }
  lines.push(`complete -c svc-code -n '__fish_seen_subcommand_from help' -a ${quoted(names.join(' '))}`)
  return `${lines.join('\n')}\n`
}
