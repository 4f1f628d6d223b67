/** The files that a line names: those of its redirections, and words that lead to files of the server itself. */
import { dirname, join, resolve } from 'node:path'
import type { Redirect, Redirection, SyntaxNode, Word } from 'unbash'
import { homeOfUser, realAt, yieldToLoop } from '../../../kernel/index.ts'
import { belongsToHome, compilePathGlob, type FileAccess, isInside, type Surroundings, withoutLinks } from '../../tools/index.ts'
import { literal, unquoted } from './words.ts'

/** Directories that a line may go to, and words whose links are followed: of more, the names are all there is. */
const BASES = 10
const LINKS = 100
/** Paths that a word may hold. */
const PIECES = 10
/** No file has a longer path. */
const PATH_CHARS = 4096

export interface Files {
  /** Words that name the server's own files. */
  readonly own: ReadonlyMap<SyntaxNode, FileAccess>
  /** Those of redirections whose target the line tells, then its own. */
  readonly accesses: readonly FileAccess[]
  /** The line goes to another directory. */
  readonly moves: boolean
  /** Whether the redirection reads a file below the directory that the line runs in, and from nothing else. */
  mayRead(node: Redirect): boolean
}

/** Of a line that runs in `cwd`; `nodes`: all of its tree. */
export async function filesOf(nodes: readonly SyntaxNode[], cwd: string, given: Surroundings): Promise<Files> {
  const around = {
    home: await withoutLinks(given.home),
    cwd: await withoutLinks(given.cwd),
    agent_dir: await withoutLinks(given.agent_dir)
  }
  const isLinked = around.home !== given.home || around.cwd !== given.cwd || around.agent_dir !== given.agent_dir
  const isOwn = (path: string) =>
    belongsToHome(atPattern(path, given.home), given) || (isLinked && belongsToHome(atPattern(path, around.home), around))
  const own = new Map<SyntaxNode, FileAccess>()
  const known = new Map<Redirect, string>()
  const accesses = new Map<string, FileAccess>()
  const redirects: Redirect[] = []
  const words: Word[] = []
  /** Where paths may begin: the line may go elsewhere before a command looks at its own. */
  const bases = new Set([cwd])
  let at = cwd
  let moves = false
  for (const node of nodes) {
    if (node.type === 'Redirect' && !isHarmless(node)) redirects.push(node)
    if (node.type === 'Word') words.push(node)
    if (node.type !== 'Command' || !/^(?:cd|pushd|popd)$/.test(node.name?.value ?? '')) continue
    moves = true
    for (const dir of [homeOfUser(), process.env.OLDPWD ?? cwd]) bases.add(dir) // `cd`, `cd -`
    for (const each of node.args) {
      at = targetOf(withVariables(unquoted(each.text)), at, given.home)
      if (bases.size < BASES) bases.add(at)
      else if (!bases.has(at)) own.set(each, { kind: 'read', path: given.home }) // it may lead anywhere
    }
  }
  for (const [index, word] of words.entries()) {
    const others = yieldToLoop()
    if (others) await others
    const value = withVariables(word.value)
    const paths = new Set<string>()
    if (value.length <= PATH_CHARS)
      for (const base of bases) for (const text of pathsIn(value, base, given.home)) paths.add(pathOf(text, base))
    let path = [...paths].find(isOwn)
    if (path === undefined && index < LINKS)
      path = (await Promise.all([...paths].map(realAt))).find(real => real !== undefined && isOwn(real))
    if (path !== undefined) own.set(word, { kind: 'read', path })
  }
  for (const node of redirects) {
    const others = yieldToLoop()
    if (others) await others
    const target = node.target && literal(node.target)
    if (target === undefined || /^~[^/]/.test(target)) continue
    const path = pathOf(target, cwd)
    const real = (await realAt(path)) ?? path // absent: its name is all there is
    known.set(node, real)
    for (const kind of kindsOf(node)) accesses.set(`${kind} ${real}`, { kind, path: real })
  }
  const root = await withoutLinks(cwd)
  return {
    accesses: [...accesses.values(), ...own.values()],
    own,
    moves,
    mayRead(node) {
      const path = known.get(node)
      return path !== undefined && !moves && isInside(path, root)
    }
  }
}

/** Texts in a word that may be paths: behind `=`, `:`, `,` and `@`, and glued to a flag. */
function pathsIn(value: string, base: string, home: string): string[] {
  const texts = new Set([value, value.slice(value.indexOf('=') + 1), ...value.split(/[=:,@]/, PIECES)])
  const flag = /^-[^-]*?([/.~].*)/s.exec(value)?.[1]
  if (/^-[^-]/.test(value)) for (const text of [flag, value.slice(2)]) if (text) texts.add(text)
  return [...texts].flatMap(text => {
    const moved = withoutDetours(text, base)
    const named = /^~[^/]+(\/.*)/s.exec(moved)?.[1] // of some user, or the directory before: any that the home lies below
    return named === undefined ? [moved] : [moved, ...ancestors(home).map(dir => join(dir, named))]
  })
}

/** The directory that `cd` goes to. */
function targetOf(text: string, base: string, home: string): string {
  if (text === '-' || text === '~-') return process.env.OLDPWD ?? base
  const user = /^~[^/+-][^/]*(.*)/s.exec(text)
  return user ? join(dirname(home), user[1]!) : pathOf(withoutDetours(text, base), base)
}

/** Without names that lead to a directory which has another one. */
function withoutDetours(text: string, base: string): string {
  return text.replace(/^\/proc\/[^/]+\/(?:root(?=\/|$)|(cwd)(?=\/|$))/, (_, isCwd) => (isCwd ? base : '')).replace(/^~\+(?=\/|$)/, base)
}

function ancestors(path: string): string[] {
  const above = dirname(path)
  return above === path ? [] : [above, ...ancestors(above)]
}

function pathOf(text: string, cwd: string): string {
  return text === '~' || text.startsWith('~/') ? join(homeOfUser(), text.slice(1)) : resolve(cwd, text)
}

/** Variables as this process has them; a command gets the same. */
function withVariables(text: string): string {
  return text.replace(/\$(?:\{(\w+)\}|(\w+))/g, (given, braced?: string, plain?: string) => process.env[braced ?? plain ?? ''] ?? given)
}

/** A path whose file patterns may stand for a directory (absolute): that directory, where they fit. Names with a dot need one in the pattern. */
export function atPattern(path: string, dir: string): string {
  const parts = path.split('/')
  const names = dir.split('/')
  const fits = names.every((name, at) => {
    const part = parts[at] ?? ''
    return part === name || (/[*?[]/.test(part) && name.startsWith('.') === part.startsWith('.') && compilePathGlob(part)(name))
  })
  return fits ? [dir, ...parts.slice(names.length)].join('/') : path
}

function kindsOf({ operator }: Redirect): ('read' | 'write')[] {
  if (operator === '<>') return ['read', 'write']
  return operator === '<' || operator === '<&' ? ['read'] : ['write']
}

/** A redirection to or from nowhere, or between descriptors. */
export function isHarmless(node: Redirection): boolean {
  if (node.type !== 'Redirect') return false
  const target = node.target && literal(node.target)
  if (target === '/dev/null') return true
  return (node.operator === '>&' || node.operator === '<&') && target !== undefined && /^(?:\d+-?|-)$/.test(target)
}

/** A redirection of standard input. */
export function isInput(node: Redirection): boolean {
  if (node.type !== 'Redirect') return true
  return /^<[>&]?$/.test(node.operator) && (node.descriptor?.type !== 'FileDescriptor' || node.descriptor.value === 0)
}

/** An input that is empty. */
export function isNothing(node: Redirection): boolean {
  return node.type === 'Redirect' && /^(?:\/dev\/null|-)$/.test((node.target && literal(node.target)) ?? '')
}
