/** The manifest of a plugin: what it says about itself and what it brings, checked against its files. */
import { readdir, realpath, stat } from 'node:fs/promises'
import { isAbsolute, join, relative, sep } from 'node:path'
import { checker, type Detail, headOf, isRecord, problems, readBounded, type Static, Type } from '../../kernel/index.ts'
import { hooksSection } from '../config/index.ts'
import { isInside } from '../tools/index.ts'
import type { HookRule } from '../user-hooks/index.ts'
import type { PluginSummary } from './contract.ts'

const text = Type.String()
const Paths = Type.Union([text, Type.Array(text)])
const Manifest = Type.Object(
  {
    name: text,
    version: Type.Optional(text),
    interface: Type.Optional(Type.Object({ displayName: Type.Optional(text) }, { additionalProperties: true })),
    skills: Type.Optional(Paths),
    agents: Type.Optional(Paths),
    commands: Type.Optional(Paths),
    mcpServers: Type.Optional(Type.Union([text, Type.Record(text, Type.Object({}, { additionalProperties: true }))])),
    hooks: Type.Optional(Type.Union([text, Type.Array(Type.Unknown())])),
    sessionStart: Type.Optional(Type.Object({ skill: text })),
    skillInstructions: Type.Optional(text),
    systemPrompt: Type.Optional(text),
    systemPromptPath: Type.Optional(text)
  },
  { additionalProperties: true }
)

type Diagnostic = NonNullable<PluginSummary['diagnostics']>[number]

/** What a plugin brings; paths absolute, links resolved, all inside its root. */
export interface PluginContents {
  readonly id: string
  readonly displayName: string
  readonly version?: string
  /** `file`: it is one skill; else a directory of skills. */
  readonly skills: readonly { readonly path: string; readonly file: boolean }[]
  readonly agents: readonly string[]
  readonly commands: readonly { readonly name: string; readonly path: string }[]
  readonly hooks: readonly HookRule[]
  readonly mcpServers: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly sessionStart?: string
  readonly skillInstructions?: string
  readonly systemPrompt?: string
}

export interface Loaded {
  readonly contents: PluginContents | undefined
  readonly diagnostics: readonly Diagnostic[]
}

export const idForm = /^[a-z0-9][a-z0-9_-]{0,63}$/
/** Where the manifest is, the first that is there. */
export const manifests = ['svc.plugin.json', join('.svc-plugin', 'plugin.json')]
const manifestBytes = 1024 * 1024
const promptBytes = 32 * 1024
const ignored = ['tools', 'apps', 'inject', 'configFile', 'bootstrap']

/** Never rejects: what is wrong stands in the diagnostics. Without contents the plugin cannot be used. */
export async function loadPlugin(root: string): Promise<Loaded> {
  const diagnostics: Diagnostic[] = []
  try {
    const contents = await new Loader(await realpath(root), diagnostics).load()
    return { contents: diagnostics.some(({ severity }) => severity === 'error') ? undefined : contents, diagnostics }
  } catch (error) {
    return { contents: undefined, diagnostics: [...diagnostics, { severity: 'error', message: reasonOf(error) }] }
  }
}

class Loader {
  readonly #root: string
  readonly #diagnostics: Diagnostic[]

  constructor(root: string, diagnostics: Diagnostic[]) {
    this.#root = root
    this.#diagnostics = diagnostics
  }

  async load(): Promise<PluginContents> {
    const manifest = await this.#manifest()
    const id = manifest.name.toLowerCase()
    if (!idForm.test(id))
      throw new Error(`name ${JSON.stringify(headOf(manifest.name, 100))} is not a plugin id (a-z, 0-9, _ and -, at most 64)`)
    for (const field of ignored) {
      if (field in manifest) this.#diagnostics.push({ severity: 'info', message: `${field} is not used` })
    }
    const { version, sessionStart, skillInstructions } = manifest
    return {
      id,
      displayName: manifest.interface?.displayName ?? id,
      version,
      skills: await this.#skills(manifest.skills),
      agents: await this.#paths('agents', manifest.agents, './agents'),
      commands: await this.#commands(id, manifest.commands),
      hooks: await this.#hooks(manifest.hooks),
      mcpServers: await this.#servers(manifest.mcpServers),
      sessionStart: sessionStart?.skill,
      skillInstructions,
      systemPrompt: await this.#systemPrompt(manifest)
    }
  }

  async #manifest(): Promise<Static<typeof Manifest>> {
    for (const name of manifests) {
      const file = join(this.#root, name)
      if (!(await stat(file).catch(() => undefined))) continue
      const value = parsed(name, await this.#read(`./${name}`, manifestBytes))
      const check = checker(Manifest)
      if (check.Check(value)) return value
      throw new Error(`${name}: ${sentence(problems(Manifest, value))}`)
    }
    throw new Error('there is no svc.plugin.json')
  }

  /** The file or directory of a path of the manifest; undefined and an error on the list when it is none, or lies outside. */
  async #inside(field: string, path: string): Promise<string | undefined> {
    const refuse = (why: string) => {
      this.#diagnostics.push({ severity: 'error', message: `${field}: ${JSON.stringify(headOf(path, 200))} ${why}` })
      return undefined
    }
    if (path !== '.' && !path.startsWith('./')) return refuse('does not begin with ./')
    if (path.includes('\0')) return refuse('is no path')
    const real = await realpath(join(this.#root, path)).catch(() => undefined)
    if (real === undefined) return refuse('is not there')
    return isInside(real, this.#root) ? real : refuse('leads out of the plugin')
  }

  async #read(path: string, limit: number): Promise<string> {
    const file = await realpath(join(this.#root, path))
    if (!isInside(file, this.#root)) throw new Error(`${path} leads out of the plugin`)
    return (await readBounded(file, limit, path)).toString()
  }

  /** Where the manifest names nothing, the usual place if it is there. */
  async #paths(field: string, given: string | readonly string[] | undefined, usual?: string): Promise<string[]> {
    if (given === undefined) {
      if (usual === undefined || !(await stat(join(this.#root, usual)).catch(() => undefined))) return []
      return [await this.#inside(field, usual)].flatMap(found => found ?? [])
    }
    const found = await Promise.all([given].flat().map(path => this.#inside(field, path)))
    return found.flatMap(path => path ?? [])
  }

  async #skills(given: string | readonly string[] | undefined): Promise<PluginContents['skills']> {
    const paths = await this.#paths('skills', given, './SKILL.md')
    return await Promise.all(
      paths.map(async path => {
        if (!(await stat(path)).isDirectory()) return { path, file: true }
        const own = join(path, 'SKILL.md')
        return (await stat(own).catch(() => undefined)) ? { path: own, file: true } : { path, file: false }
      })
    )
  }

  async #commands(id: string, given: string | readonly string[] | undefined): Promise<PluginContents['commands']> {
    const commands: { name: string; path: string }[] = []
    for (const path of await this.#paths('commands', given, './commands')) {
      if ((await stat(path)).isDirectory()) {
        for (const file of await markdownIn(path, this.#root)) {
          commands.push({ name: `${id}:${relative(path, file).slice(0, -3).split(sep).join(':')}`, path: file })
        }
      } else if (path.endsWith('.md')) {
        commands.push({ name: `${id}:${path.slice(path.lastIndexOf(sep) + 1, -3)}`, path })
      } else
        this.#diagnostics.push({ severity: 'error', message: `commands: ${relative(this.#root, path)} is no directory and no .md file` })
    }
    return commands.filter(({ name }) => /^[\w:.-]+$/.test(name))
  }

  async #hooks(given: string | readonly unknown[] | undefined): Promise<readonly HookRule[]> {
    if (given === undefined) return []
    const value = typeof given === 'string' ? parsed(given, await this.#file('hooks', given)) : given
    const rules = Array.isArray(value) ? value : (value as { hooks?: unknown } | null)?.hooks
    const check = checker(hooksSection.schema)
    if (check.Check(rules)) return rules.map(rule => ({ ...rule, cwd: this.#root }))
    this.#diagnostics.push({ severity: 'error', message: `hooks: ${sentence(problems(hooksSection.schema, rules))}` })
    return []
  }

  async #servers(given: string | Readonly<Record<string, object>> | undefined): Promise<PluginContents['mcpServers']> {
    if (given === undefined) return {}
    const value = typeof given === 'string' ? parsed(given, await this.#file('mcpServers', given)) : { mcpServers: given }
    const servers = (value as { mcpServers?: unknown } | null)?.mcpServers
    if (!isRecord(servers)) throw new Error('mcpServers: is no table of servers')
    const table: Record<string, Readonly<Record<string, unknown>>> = {}
    for (const [name, config] of Object.entries(servers)) {
      const problem = await this.#serverProblem(name, config)
      if (problem === undefined) table[name] = config as Record<string, unknown>
      else this.#diagnostics.push({ severity: 'error', message: `mcpServers.${headOf(name, 100)}: ${problem}` })
    }
    return table
  }

  /** A command is a program of the machine, by its name or absolute path, or a file of the plugin, which also is where it runs. */
  async #serverProblem(name: string, config: unknown): Promise<string | undefined> {
    if (!isRecord(config)) return 'is no table'
    if (!/^[\w.-]{1,100}$/.test(name)) return 'has a name that is none'
    const { command, cwd, url } = config
    if (command === undefined && url === undefined) return 'has neither command nor url'
    if (typeof command === 'string' && !isAbsolute(command) && /[/\\]/.test(command)) {
      if (!(await this.#inside(`mcpServers.${name}.command`, command))) return 'its command is no program of the plugin'
    }
    if (cwd !== undefined && (typeof cwd !== 'string' || !(await this.#inside(`mcpServers.${name}.cwd`, cwd)))) {
      return 'its cwd is no directory of the plugin'
    }
    return undefined
  }

  async #systemPrompt({ systemPrompt, systemPromptPath }: Static<typeof Manifest>): Promise<string | undefined> {
    const file = systemPromptPath === undefined ? '' : await this.#file('systemPromptPath', systemPromptPath)
    const given = [systemPrompt ?? '', file].map(part => part.trim()).filter(part => part !== '')
    if (given.length === 0) return undefined
    if (given.every(part => Buffer.byteLength(part) <= promptBytes)) return given.join('\n\n')
    this.#diagnostics.push({ severity: 'error', message: `systemPrompt: is larger than ${promptBytes} bytes` })
    return undefined
  }

  /** Text of a file that the manifest names. */
  async #file(field: string, path: string): Promise<string> {
    const file = await this.#inside(field, path)
    if (file === undefined) throw new Error(`${field}: cannot be read`)
    return await this.#read(`./${relative(this.#root, file)}`, manifestBytes)
  }
}

const commandDepth = 8
const maxCommands = 500

async function markdownIn(dir: string, root: string, depth = 0): Promise<string[]> {
  const files: string[] = []
  const entries = await readdir(dir, { withFileTypes: true })
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.name.startsWith('.') || entry.name === 'node_modules' || files.length >= maxCommands) continue
    const path = join(dir, entry.name)
    if (entry.isDirectory() && depth < commandDepth) files.push(...(await markdownIn(path, root, depth + 1)))
    else if (entry.isFile() && entry.name.endsWith('.md')) files.push(path)
  }
  return files
}

const sentence = (details: readonly Detail[]) => details.map(({ path, message }) => `${path} ${message}`.trim()).join('; ')

const reasonOf = (error: unknown) => (error as Error).message.slice(0, 300)

/** A byte order mark counts as white space. */
function parsed(file: string, text: string): unknown {
  try {
    return JSON.parse(text.trim())
  } catch {
    throw new Error(`${file} is no JSON`)
  }
}
