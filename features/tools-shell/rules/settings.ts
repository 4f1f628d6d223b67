/** Programs under other names, and what a line leaves behind for programs to run: settings, aliases, variables. */
import { leading } from './flags.ts'
import { baseOf, list } from './words.ts'

/** Programs that give another name to a program. */
export const namers = new Set(['cp', 'install', 'link', 'ln', 'mv'])

/** Names of programs that get another name. */
export function namedAnew(words: readonly string[]): string[] {
  if (!namers.has(baseOf(words[0] ?? ''))) return []
  return words.flatMap(word => {
    const found = /^\/(?:usr\/)?(?:local\/)?s?bin\/([^/]+)$|[$`]\(?(?:which|command -v|type -[pP]) +([\w.+-]+)/.exec(word)
    return found?.[1] ?? found?.[2] ?? []
  })
}

/** Programs with subcommands that do what another program does: `program mark:subcommand=that ...`; the mark stands before it. */
const substitutes = new Map(
  [
    `cmake -E:copy=cp copy_directory=cp copy_directory_if_different=cp copy_if_different=cp create_hardlink=ln create_symlink=ln
      make_directory=mkdir remove=rm remove_directory=rm rename=mv`,
    'gio :copy=cp move=mv remove=rm trash=rm',
    'hadoop fs:-cp=cp -mkdir=mkdir -mv=mv -rm=rm',
    'hdfs dfs:-cp=cp -mkdir=mkdir -mv=mv -rm=rm'
  ].map(entry => {
    const [head = '', verbs = ''] = entry.split(':')
    const [name = '', mark = ''] = head.split(' ')
    return [name, { mark, verbs: new Map(list(verbs).map(verb => verb.split('=') as [string, string])) }] as const
  })
)

/** The command of the other program that it stands for; undefined: for none. */
export function standsFor(words: readonly string[]): string | undefined {
  const substitute = substitutes.get(baseOf(words[0] ?? ''))
  if (!substitute) return undefined
  const at = substitute.mark === '' ? 1 : words.indexOf(substitute.mark) + 1
  const verb = at > 0 ? substitute.verbs.get(words[at] ?? '') : undefined
  return verb && [verb, ...words.slice(at + 1)].join(' ')
}

/** Subcommands that keep settings and aliases, or run their words, by program. */
const settingsOf = new Map<string, RegExp>([
  ['aws', /^configure$/],
  ['cargo', /^watch$/],
  ...list('gh glab').map(name => [name, /^(?:alias|codespace|config|cs|ext(?:ension)?)$/] as const),
  ...list('git hg jj').map(name => [name, /^config$/] as const),
  ['go', /^env$/],
  ['kubectl', /^config$/],
  ...list('npm pnpm yarn').map(name => [name, /^(?:c|config|explore|set)$/] as const)
])
/** Names of settings whose values are run, or lead to what is run. */
const programKey =
  /alias|askpass|browser|\bcc\b|clean|cmd|codespace|command|credential|cxx|driver|editor|exec|explore|ext|external|filter|fsmonitor|helper|hook|include|insteadof|pack|pager|process|program|shell|smudge|ssh|template|tool|update|vcs|viewer|watch/i

/** Whether the command keeps something that a program will run, as far as the name of the setting tells. */
export function keepsCommands(words: readonly string[]): boolean {
  const subcommand = settingsOf.get(baseOf(words[0] ?? ''))
  if (!subcommand) return false
  const at = words.slice(0, leading(words) + 1).findIndex((word, index) => index > 0 && subcommand.test(word))
  if (at < 0) return false
  const key = words.slice(at + 1).find(word => !/^(?:-.*|add|get|import|list|set|unset)$/.test(word))
  return key !== undefined && (/^["']?[$`]/.test(key) || programKey.test(`${words[at]} ${key}`))
}

/** Whether programs run what the environment variable says. */
export function isProgramVariable(name: string): boolean {
  return /(?:^|_)(?:ASKPASS|BROWSER|COMMAND|DIFF|EDITOR|PAGER|RSH|VISUAL)$|^(?:GIT_CONFIG_|GIT_SSH|LESS(?:CLOSE|OPEN)$|SHELL$)|script_shell$/.test(
    name
  )
}
