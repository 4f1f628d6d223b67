/** Which skills there are for a directory: found when they are asked for, kept until a file or directory changes. */
import { dirname, join } from 'node:path'
import { type Accounts, askEach, type Contribution, homeOfUser, type Logger, lookAtAll, stampsAt } from '../../kernel/index.ts'
import { configuredDir, projectRoot } from '../workspaces/index.ts'
import { builtinSkills } from './builtin.ts'
import type { Skill, SkillOrigin, SkillSource } from './service.ts'
import { note, readSkill, type Scan, scanSkills } from './skill-files.ts'

export interface CatalogPorts {
  /** The server's home. */
  readonly home: string
  /** The user's. */
  readonly userHome?: string
  readonly log: Logger
  /** `merge`: of the places of a project, and of the user, all count, and not only the first that is there. */
  readonly settings: () => { readonly extra: readonly string[]; readonly merge: boolean; readonly builtin: boolean }
  /** Skills of packs. */
  readonly sources: () => readonly Contribution<SkillSource>[]
  readonly accounts: Accounts
}

interface Found {
  readonly skills: readonly Skill[]
  readonly visited: Scan['visited']
}

/** Working directories that are remembered. */
const kept = 100

interface Place extends SkillOrigin {
  readonly path: string
  readonly file?: boolean
  readonly command?: Skill['command']
}

export class SkillCatalog {
  readonly #ports: CatalogPorts
  readonly #found = new Map<string, Promise<Found>>()

  constructor(ports: CatalogPorts) {
    this.#ports = ports
  }

  async list(cwd: string): Promise<readonly Skill[]> {
    const levels = await this.#levels(cwd)
    const key = JSON.stringify([levels, this.#ports.settings().builtin])
    const known = this.#found.get(key)
    if (known) {
      const { skills, visited } = await known
      const stamps = await stampsAt([...visited.keys()])
      if ([...visited.values()].every((stamp, at) => stamp === stamps[at])) return skills
    }
    const search = this.#search(levels)
    this.#found.delete(key)
    this.#found.set(key, search)
    for (const oldest of this.#found.keys()) if (this.#found.size > kept) this.#found.delete(oldest)
    search.catch(() => this.#found.delete(key)) // whoever asked hears of it
    return (await search).skills
  }

  async find(cwd: string, name: string): Promise<Skill | undefined> {
    const wanted = name.toLowerCase()
    return (await this.list(cwd)).find(skill => skill.name.toLowerCase() === wanted)
  }

  /** Another text whenever another skill may be listed. */
  async basis(cwd: string): Promise<string> {
    const listed = await this.list(cwd)
    return listed.map(({ path, description }) => `${path} ${description}`).join('\n')
  }

  /** Places in order, the most important first. Of the places of one level that are not merged, only the first that is there counts. */
  async #levels(cwd: string): Promise<readonly (readonly Place[])[]> {
    const { home, userHome = homeOfUser(), settings, sources, accounts } = this.#ports
    const { extra, merge } = settings()
    const root = await projectRoot(cwd)
    await Promise.all(sources().map(({ item }) => item.refresh?.()))
    const level = async (source: SkillOrigin['source'], paths: readonly string[]) => {
      const places = paths.map(path => ({ source, path }))
      if (merge) return places
      const there = (await lookAtAll(paths)).findIndex(found => found !== undefined)
      return places.filter((_, at) => at === there)
    }
    return [
      await level('project', [join(root, '.svc-code', 'skills'), join(root, '.agents', 'skills')]),
      await level('user', [join(home, 'skills'), join(userHome, '.agents', 'skills')]),
      extra.map(dir => ({ source: 'extra' as const, path: configuredDir(dir, root, userHome) })),
      askEach(
        sources(),
        accounts,
        ({ name }) => `skill source ${name}`,
        source => [
          ...source.places().map(place => ({ source: 'extra' as const, ...place })),
          ...(source.commands?.() ?? []).map(({ path, ...command }) => ({ source: 'extra' as const, path, file: true, command }))
        ]
      )
    ]
  }

  async #search(levels: readonly (readonly Place[])[]): Promise<Found> {
    const byName = new Map<string, Skill>()
    const visited = new Map<string, string>()
    const add = (skill: Skill) => {
      const key = skill.name.toLowerCase()
      if (!byName.has(key)) byName.set(key, skill)
    }
    for (const { path, file, command, ...origin } of levels.flat()) {
      const scan = file ? await single(path, origin, this.#ports.home, command) : await scanSkills(path, origin, this.#ports.home)
      for (const skill of scan.skills) add(skill)
      for (const problem of scan.problems) this.#ports.log.warn(problem, 'a skill is not used')
      for (const [place, stamp] of scan.visited) if (!visited.has(place)) visited.set(place, stamp)
    }
    if (this.#ports.settings().builtin) for (const skill of builtinSkills) add(skill)
    const skills = [...byName.values()].sort((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1))
    return { skills, visited }
  }
}

/** A file that is one skill. */
async function single(path: string, origin: SkillOrigin, home: string, command?: Skill['command']): Promise<Scan> {
  const scan: Scan = { skills: [], visited: new Map(), problems: [] }
  for (const place of [path, dirname(path)]) await note(scan, place)
  try {
    const skill = await readSkill(path, origin, home, { named: command && `${command.plugin_id}:${command.name}` })
    const called = command && { type: 'flow' as const, command }
    return { ...scan, skills: [{ ...skill, ...called }] }
  } catch (error) {
    return { ...scan, problems: [{ file: path, reason: error instanceof Error ? error.message : String(error) }] }
  }
}
