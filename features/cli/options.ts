/** Reading a command line: which command, which words and options, and errors that say what would have been right. */
import { parseArgs } from 'node:util'
import { nearest } from '../../kernel/text.ts'
import { type CommandLine, type CommandName, type CommandSpec, commandSpecs, type Form, flagsOf } from './commands.ts'
import { type Flag, type FlagName, type FlagValues, flags, logLevels } from './flags.ts'

/** A command line that cannot be understood; the text says what would have been right. Exit code 2. */
export class UsageError extends Error {}

/** What was typed: a command to run, a text to show, or the version. */
type Parsed =
  | ({ readonly kind: 'run' } & CommandLine)
  | { readonly kind: 'help'; readonly command: CommandName | undefined; readonly verb: string | undefined }
  | { readonly kind: 'version' }

const shortNames: readonly string[] = Object.values<Flag>(flags).flatMap(flag => flag.short ?? [])
const names = Object.keys(commandSpecs) as CommandName[]

export function parseCommandLine(args: readonly string[]): Parsed {
  for (const arg of args) {
    if (arg === '--') break
    const name = /^--?([^=]+)/.exec(arg)?.[1]
    if (name !== undefined && !(arg.startsWith('--') ? Object.hasOwn(flags, name) : [...name].every(one => shortNames.includes(one))))
      throw new UsageError(`unknown option ${arg.split('=', 1)[0]}.${suggestion(name, Object.keys(flags), '--')}`)
  }
  const { values, positionals } = split(args)
  const [word = 'serve', ...rest] = positionals
  const command = commandOf(word)
  if (values.help) return { kind: 'help', command: positionals.length === 0 ? undefined : command, verb: formNamed(command, rest[0])?.verb }
  if (values.version) return { kind: 'version' }
  const { form, words } = formOf(command, rest)
  const taken = flagsOf(commandSpecs[command], form)
  for (const name of Object.keys(values) as FlagName[]) if (!taken.includes(name)) throw strayFlag(name, command, form)
  checkValues(values)
  return { kind: 'run', command, verb: form.verb, words, flags: values }
}

function split(args: readonly string[]): { values: FlagValues; positionals: string[] } {
  const options: Record<string, { type: 'string' | 'boolean'; multiple?: boolean; short?: string }> = {}
  for (const [name, flag] of Object.entries(flags) as [string, Flag][]) {
    options[name] = { type: flag.type, ...(flag.multiple ? { multiple: true } : {}), ...(flag.short ? { short: flag.short } : {}) }
  }
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true }) as { values: FlagValues; positionals: string[] }
  } catch (error) {
    throw new UsageError(`${explained(error as Error)}\nsvc-code --help lists the commands.`)
  }
}

/** The parser's complaint in our words where it is about a value. */
function explained(error: Error): string {
  const name = /'(?:-\w, )?--([a-z-]+)/.exec(error.message)?.[1] ?? ''
  const flag = (flags as Readonly<Record<string, Flag>>)[name]
  if (!flag) return error.message.split('\n', 1)[0] ?? ''
  return flag.type === 'boolean' ? `--${name} takes no value.` : `--${name} needs a value: --${name} <${flag.value}>.`
}

/** The command of this name; throws with the one that was meant. */
export function commandOf(word: string): CommandName {
  const found = names.find(name => name === word)
  if (found) return found
  throw new UsageError(`unknown command '${word}'.${suggestion(word, names, '')}`)
}

function strayFlag(name: FlagName, command: CommandName, { verb }: Form): UsageError {
  const takers = names.flatMap(one => {
    const { flags: shared, forms }: CommandSpec = commandSpecs[one]
    if (shared.includes(name)) return [`svc-code ${one} --${name}`]
    return forms.filter(form => form.flags?.includes(name)).map(form => `svc-code ${one} ${form.verb} --${name}`)
  })
  const here = verb === '' ? command : `${command} ${verb}`
  return new UsageError(`--${name} does not belong to ${here}.${takers.length > 0 ? ` It belongs to: ${takers.join(', ')}.` : ''}`)
}

/** The form of a command that a word chooses. */
export function formNamed(command: CommandName, word: string | undefined): Form | undefined {
  const { forms }: CommandSpec = commandSpecs[command]
  return forms.find(({ verb }) => verb !== '' && verb === word)
}

/** Which form of the command the words choose, and what is left of them. */
function formOf(command: CommandName, words: readonly string[]): { form: Form; words: readonly string[] } {
  const { forms }: CommandSpec = commandSpecs[command]
  const [first] = forms
  const [word, ...rest] = words
  const hasVerbs = first !== undefined && first.verb !== ''
  const form = !hasVerbs || word === undefined ? first : formNamed(command, word)
  const verbs = forms.map(({ verb }) => verb)
  const usage = (...shown: readonly Form[]) => `usage: ${shown.map(one => usageOf(command, one)).join('\n       ')}`
  if (!form) throw new UsageError(`'${word}' does not belong here.${suggestion(word ?? '', verbs, '')}\n${usage(...forms)}`)
  const left = hasVerbs ? rest : words
  const args = form.args ?? []
  const needed = args.filter(arg => arg.startsWith('<')).length
  if (hasVerbs && word === undefined && needed > 0) throw new UsageError(`give one of ${verbs.join(', ')}.\n${usage(...forms)}`)
  const open = args.at(-1)?.includes('...') ?? false
  const blank = left.indexOf('') // of a variable that is not set
  const absent = blank === -1 ? left.length : Math.min(blank, left.length)
  if (absent < needed) throw new UsageError(`${args[absent]} is missing.\n${usage(form)}`)
  if (left.length > args.length && !open) throw new UsageError(`'${left[args.length]}' does not belong here.\n${usage(form)}`)
  return { form, words: left }
}

/** `svc-code token rotate` */
export function usageOf(command: CommandName, { verb, args = [] }: Form): string {
  return ['svc-code', command, verb, ...args].filter(word => word !== '').join(' ')
}

function checkValues(values: FlagValues): void {
  // Of a variable that is not set: the default in its place is another home, another model.
  for (const [name, value] of Object.entries(values))
    if ([value].flat().includes(''))
      throw new UsageError(`--${name} needs a value: --${name} <${(flags[name as FlagName] as Flag).value}>.`)
  if (values.port !== undefined && !(/^\d{1,5}$/.test(values.port) && Number(values.port) <= 65_535)) {
    throw new UsageError(`--port ${values.port} is not a port: give a number from 0 to 65535.`)
  }
  if (values.lines !== undefined && !/^\d{1,6}$/.test(values.lines)) {
    throw new UsageError(`--lines ${values.lines} is no number of lines: give one from 0 to 999999.`)
  }
  const level = values['log-level']
  if (level !== undefined && !logLevels.includes(level)) {
    throw new UsageError(`--log-level ${level} is unknown: give one of ${logLevels.join(', ')}.`)
  }
  for (const origin of values['cors-origin'] ?? []) {
    if (!isOrigin(origin)) {
      throw new UsageError(`--cors-origin ${origin} is not an origin: give scheme, host and port only, such as https://app.example:8443.`)
    }
    if (origin === 'null' && values['dangerous-bypass-auth']) {
      throw new UsageError('--cors-origin null cannot stand beside --dangerous-bypass-auth: any web page can call itself that.')
    }
  }
}

/** As a browser writes it: of a web page, of an extension or an editor's view (any scheme), or `null` (a file, a sandboxed frame). */
export function isOrigin(text: string): boolean {
  if (text === 'null') return true
  if (!URL.canParse(text)) return false
  const { origin, protocol } = new URL(text)
  return origin === 'null' ? protocol !== 'file:' && /^[a-z][a-z0-9+.-]*:\/\/[^/?#@\s]+$/.test(text) : origin === text
}

/** Tells of a pack name (of --disable, --require or config.toml) that nobody has: a typing error would go unnoticed. */
export function checkPackNames(
  option: 'disable' | 'require' | 'isolate',
  given: readonly string[],
  known: readonly string[],
  tell: (problem: UsageError) => void
): void {
  const odd = given.find(name => !known.includes(name))
  if (odd === undefined) return
  const best = near(odd, known)
  const hint = best === undefined ? '' : ` Did you mean ${best}?`
  const where = `${option === 'isolate' ? '' : `--${option} or `}[packs] ${option}`
  tell(new UsageError(`unknown pack '${odd}' in ${where}.${hint} svc-code packs lists them.`))
}

const near = (given: string, known: readonly string[]): string | undefined =>
  nearest(given, known, Math.max(2, Math.floor(given.length / 3)))

function suggestion(given: string, known: readonly string[], prefix: string): string {
  const best = near(given, known)
  return best === undefined ? ` Known: ${known.map(name => prefix + name).join(', ')}.` : ` Did you mean ${prefix}${best}?`
}
