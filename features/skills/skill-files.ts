/** Skills in files: `<name>/SKILL.md` with front matter, or a flat `<name>.md` at the top of a directory of skills. */
import { readdir, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { headOf, isMissing, readBounded, stampAt } from '../../kernel/index.ts'
import { leadsOffLimits } from '../tools/index.ts'
import { fieldOf, frontMatter } from '../workspaces/index.ts'
import { type Skill, type SkillOrigin, type SkillType, skillTypes } from './service.ts'

const maxDepth = 8
const maxSkills = 1000
/** Directories of one place that are looked through: a link, or the configuration, can name a whole disk. */
const maxDirectories = 2000
const maxBytes = 512 * 1024
const flatDescription = 240

/** What a scan found, and by which places another one could find more. */
export interface Scan {
  readonly skills: Skill[]
  /** Every directory and file that was looked at, absolute, with its stamp from before that: what changes meanwhile shows in the next one. */
  readonly visited: Map<string, string>
  /** Files that are no skills although they are meant to be. */
  readonly problems: { readonly file: string; readonly reason: string }[]
}

/** Skills of one directory. Sorted; entries that begin with a dot and `node_modules` are skipped; links are followed. `home`: the server's. */
export async function scanSkills(root: string, origin: SkillOrigin, home: string): Promise<Scan> {
  const scan: Scan = { skills: [], visited: new Map(), problems: [] }
  const left = { directories: maxDirectories }
  const seen = new Set([await realOf(root)])
  await visit(root, { scan, origin, home, left, seen, depth: 0 })
  if (left.directories < 0) {
    scan.problems.push({ file: root, reason: `it holds more than ${maxDirectories} directories, and only these were looked through` })
  }
  return scan
}

const realOf = (dir: string) => realpath(dir).catch(() => dir) // it is gone, or was never there

interface Place {
  readonly scan: Scan
  readonly origin: SkillOrigin
  readonly home: string
  /** How many directories may still be looked through; below 0 there were more. */
  readonly left: { directories: number }
  /** Directories that were come to, without links: one that links lead to again is left out. */
  readonly seen: Set<string>
  readonly depth: number
  /** Name of the skill in whose directory this one lies. */
  readonly parent?: string
}

async function visit(dir: string, place: Place): Promise<void> {
  const { scan, origin, home, left, seen, depth, parent } = place
  if (--left.directories < 0) return
  await note(scan, dir)
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => []) // most of these directories are not there
  const names = entries
    .filter(entry => !entry.name.startsWith('.') && entry.name !== 'node_modules')
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  const inDirectories = new Set<string>()
  for (const entry of names) {
    if (scan.skills.length >= maxSkills || depth >= maxDepth || left.directories < 0) break
    if (!entry.isDirectory() && !entry.isSymbolicLink()) continue
    const below = join(dir, entry.name)
    await note(scan, below) // where a link leads that is not followed, too
    if (!(await stat(below).catch(() => undefined))?.isDirectory()) continue // a link to a file, or to nothing
    const real = await realOf(below)
    if (seen.has(real)) continue
    seen.add(real)
    inDirectories.add(entry.name)
    const file = join(below, 'SKILL.md')
    const skill = await attempt(file, scan, () => readSkill(file, origin, home, { parent }))
    if (skill === undefined) await visit(below, { ...place, depth: depth + 1 })
    else if (skill !== 'broken') {
      scan.skills.push(skill)
      if (skill.has_sub_skills) await visit(below, { ...place, depth: depth + 1, parent: skill.name })
    }
  }
  if (depth > 0) return
  for (const entry of names) {
    const name = entry.name.endsWith('.md') ? entry.name.slice(0, -3) : ''
    if (name === '' || name === 'SKILL' || entry.isDirectory() || inDirectories.has(name) || scan.skills.length >= maxSkills) continue
    const skill = await attempt(join(dir, entry.name), scan, () => readSkill(join(dir, entry.name), origin, home, { parent, flat: name }))
    if (skill !== undefined && skill !== 'broken') scan.skills.push(skill)
  }
}

/** The first stamp counts. */
export async function note({ visited }: Pick<Scan, 'visited'>, path: string): Promise<void> {
  if (!visited.has(path)) visited.set(path, await stampAt(path))
}

/** Undefined: there is no such file. */
async function attempt(file: string, scan: Scan, read: () => Promise<Skill>): Promise<Skill | 'broken' | undefined> {
  await note(scan, file)
  try {
    return await read()
  } catch (error) {
    if (isMissing(error)) {
      scan.visited.delete(file) // its directory tells when it comes
      return undefined
    }
    scan.problems.push({ file, reason: error instanceof Error ? error.message : String(error) })
    return 'broken'
  }
}

/** What is known of a file before it is read. */
interface Naming {
  /** Name of the skill in whose directory it lies. */
  readonly parent?: string | undefined
  /** Its name unless it says another; it need not have front matter. */
  readonly flat?: string | undefined
  /** Its name, whatever it says; it need not have front matter. */
  readonly named?: string | undefined
}

/** Throws where the file is no skill. */
export async function readSkill(file: string, origin: SkillOrigin, home: string, naming: Naming = {}): Promise<Skill> {
  const { parent, named, flat = named } = naming
  const text = await textOf(file, home)
  const parsed = await frontMatter(text)
  if (!parsed && flat === undefined) throw new Error('it has no front matter')
  const { fields, body } = parsed ?? { fields: {}, body: text }
  const field = (...names: string[]) => fieldOf(fields, ...names)
  const name = named ?? String(field('name') ?? flat ?? '').trim()
  if (name === '') throw new Error('it has no name')
  if (named === undefined && !/^\P{Cc}{1,200}$/u.test(name)) throw new Error('its name has several lines, or more than 200 characters')
  const description = String(field('description') ?? (flat === undefined ? '' : firstLine(body))).trim()
  if (description === '') throw new Error('it has no description')
  const type = String(field('type') ?? 'prompt')
  if (!skillTypes.includes(type as SkillType)) throw new Error(`the type ${type} is not known`)
  const when = field('whenToUse', 'when-to-use', 'when_to_use')
  const metadata = field('metadata') as Record<string, unknown> | undefined
  const nested = field('has-sub-skill', 'hasSubSkill') ?? metadata?.['has-sub-skill'] ?? metadata?.hasSubSkill
  return {
    ...origin,
    name: parent === undefined ? name : `${parent}.${name}`,
    description,
    path: file,
    dir: dirname(file),
    type: type as SkillType,
    arguments: argumentNames(field('arguments')),
    ...(typeof when === 'string' && when.trim() !== '' ? { when_to_use: when.trim() } : {}),
    ...(field('disableModelInvocation', 'disable-model-invocation', 'disable_model_invocation') === true
      ? { disable_model_invocation: true }
      : {}),
    ...(parent === undefined ? {} : { sub: true }),
    ...(flat === undefined && basename(file) === 'SKILL.md' && nested === true ? { has_sub_skills: true } : {})
  }
}

/** What the skill says, without its front matter. Read when it is used: an edit counts at once. */
export async function skillBody(file: string, home: string): Promise<string> {
  const text = await textOf(file, home)
  return ((await frontMatter(text))?.body ?? text).trim()
}

async function textOf(file: string, home: string): Promise<string> {
  if (await leadsOffLimits(file, home)) throw new Error('it is a link to a file that is off limits')
  return (await readBounded(file, maxBytes, 'it')).toString()
}

const firstLine = (body: string) =>
  headOf(
    body
      .split('\n')
      .map(line => line.replace(/^#+\s*/, '').trim())
      .find(line => line !== '') ?? '',
    flatDescription
  )

/** A list, or names between blanks or commas. Numbers are places, not names. */
function argumentNames(value: unknown): readonly string[] {
  const names = typeof value === 'string' ? value.split(/[\s,]+/) : Array.isArray(value) ? value.map(String) : []
  return names.map(name => name.trim()).filter(name => /^[A-Za-z_][\w-]*$/.test(name))
}
