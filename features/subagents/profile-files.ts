/** Agent profiles in files: Markdown with front matter, in directories of the project and of the user. */
import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { homeOfUser, type Logger, lookAtAll, readBounded } from '../../kernel/index.ts'
import type { AgentProfile } from '../agent/index.ts'
import { configuredDir, fieldOf, frontMatter, projectRoot } from '../workspaces/index.ts'

const maxDepth = 8
const maxFiles = 500
/** Directories of one place that are looked through: the configuration can name a whole disk. */
const maxDirectories = 2000
const maxBytes = 256 * 1024
const nameForm = /^[a-z0-9]+(-[a-z0-9]+)*$/

/** Where files are looked for, the most important first. `extra`: of the configuration; relative ones below the project root. */
export async function profileDirs(
  cwd: string,
  home: string,
  extra: readonly string[],
  userHome: string = homeOfUser()
): Promise<readonly string[]> {
  const root = await projectRoot(cwd)
  return [
    join(root, '.svc-code', 'agents'),
    join(root, '.agents', 'agents'),
    ...extra.map(dir => configuredDir(dir, root, userHome)),
    join(home, 'agents'),
    join(userHome, '.agents', 'agents')
  ]
}

/** Profiles of these directories; of two with one name the first counts. What cannot be used is left out with a warning. */
export async function readProfiles(dirs: readonly string[], log: Logger): Promise<readonly AgentProfile[]> {
  const found = new Map<string, AgentProfile>()
  const there = await lookAtAll(dirs) // most of these directories are not there
  for (const dir of dirs.filter((_, at) => there[at] !== undefined)) {
    for (const file of await markdownIn(dir)) {
      const profile = await readProfile(file).catch((error: unknown) => {
        log.warn({ file, reason: error instanceof Error ? error.message : String(error) }, 'an agent profile is not used')
        return undefined
      })
      if (profile && !found.has(profile.name)) found.set(profile.name, profile)
    }
  }
  return [...found.values()]
}

async function markdownIn(root: string): Promise<string[]> {
  const files: string[] = []
  let left = maxDirectories
  const visit = async (dir: string, depth: number): Promise<void> => {
    if (left-- <= 0) return
    const entries = await readdir(dir, { withFileTypes: true }).catch(() => []) // gone meanwhile, or not ours to read
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (files.length >= maxFiles) return
      if (entry.name.startsWith('.') || entry.name === 'node_modules') continue
      if (entry.isDirectory() && depth < maxDepth) await visit(join(dir, entry.name), depth + 1)
      else if (entry.isFile() && entry.name.endsWith('.md')) files.push(join(dir, entry.name))
    }
  }
  await visit(root, 0)
  return files
}

async function readProfile(file: string): Promise<AgentProfile> {
  const parsed = await frontMatter((await readBounded(file, maxBytes, 'it')).toString())
  if (!parsed) throw new Error('it has no front matter')
  const field = (...names: string[]) => fieldOf(parsed.fields, ...names)
  const name = String(field('name') ?? basename(file, '.md'))
  if (!nameForm.test(name)) throw new Error(`the name ${name} is not in kebab-case`)
  const description = field('description')
  if (typeof description !== 'string' || description.trim() === '') throw new Error('it has no description')
  const when = field('whenToUse', 'when-to-use', 'when_to_use')
  const lists = {
    tools: toolsOf(listOf(field('tools'))),
    disallowed_tools: listOf(field('disallowedTools', 'disallowed_tools')),
    subagents: listOf(field('subagents'))
  }
  const body = parsed.body.trim()
  return {
    name,
    description: typeof when === 'string' && when.trim() !== '' ? `${description.trim()} ${when.trim()}` : description.trim(),
    ...(isTemplate(body) ? { role: '', prompt: body } : { role: body }),
    ...(field('override') === true ? { override: true } : {}),
    ...Object.fromEntries(Object.entries(lists).filter(([, list]) => list !== undefined))
  }
}

/** A body with variables is the whole prompt; one without is added to the usual one. */
const isTemplate = (body: string) => /\$\{\w+\}/.test(body)

/** `*` is no limit. */
const toolsOf = (list: readonly string[] | undefined) => (list?.includes('*') ? undefined : list)

/** A list, or names between commas. */
function listOf(value: unknown): readonly string[] | undefined {
  if (value === undefined || value === null) return undefined
  const list = typeof value === 'string' ? value.split(',') : Array.isArray(value) ? value.map(String) : []
  const names = list.map(entry => entry.trim()).filter(Boolean)
  return names
}
