/** The Glob tool: files by name, newest first. */
import { join } from 'node:path'
import type { Static } from '../../kernel/index.ts'
import { globOf, SEARCH_BYTES, type SearchEngine } from '../file-search/index.ts'
import { isInside, isProtected, mayChange, type Tool, type ToolEnv, ToolRefusal } from '../tools/index.ts'
import { globParameters } from './contract.ts'
import { newestFirst, SEARCH_FILES } from './newest.ts'
import { locate, type PlacePorts, searchRule, surroundings } from './places.ts'

type Arguments = Static<typeof globParameters>

export interface SearchPorts extends PlacePorts {
  readonly engine: () => Promise<SearchEngine>
  /** Whether a file (absolute) may be shown to the agent. */
  readonly readable: (env: ToolEnv) => Promise<(path: string) => boolean>
}

/** Paths in one answer. */
const SHOWN = 100

export function createGlob(ports: SearchPorts): Tool<typeof globParameters> {
  const { ops, engine, readable } = ports
  return {
    name: 'Glob',
    description:
      'Finds files by name pattern, newest first, at most 100. Hidden files are included; files excluded by ignore files are not, unless ' +
      'include_ignored is set. Paths count from the directory that is searched. A search that finds more than 20000 files, or takes 20 s, stops there: start at a nearer directory.',
    parameters: globParameters,
    source: 'builtin',
    async prepare(args: Arguments, env) {
      const root = await locate(args.path ?? '.', env, ports)
      const assertDirectory = async () => {
        if ((await ops.stat(root.real))?.kind !== 'directory') throw new ToolRefusal(`${root.path} is not a directory.`)
        if (!(await ops.maySearch(root.real))) throw new ToolRefusal(`No permission for ${root.path}.`)
      }
      return {
        description: `Finding ${args.pattern}`,
        display: { kind: 'file_io', operation: 'glob', path: root.path, detail: args.pattern },
        accesses: [{ kind: 'search' as const, path: root.real, recursive: true }],
        ...searchRule(args.pattern),
        async check() {
          if (!mayChange(env.earlier, root.real, true)) await assertDirectory()
        },
        async run(_progress, signal) {
          await assertDirectory()
          const below = `${root.path}/`
          const fits = globOf(args.pattern.startsWith(below) ? args.pattern.slice(root.path.length) : args.pattern)
          const mayRead = await readable(env)
          const around = await surroundings(env, ports)
          const found: string[] = []
          let bytes = 0
          const request = { root: root.real, include_ignored: args.include_ignored ?? false }
          const collect = (path: string) => {
            const real = join(root.real, path)
            if (!fits(path) || isProtected(real, around) || !mayRead(real)) return true
            found.push(path)
            bytes += path.length + 1
            return bytes <= SEARCH_BYTES && found.length < SEARCH_FILES
          }
          const partial = await (await engine()).list(request, collect, signal)
          const sorted = await newestFirst(found, path => join(root.real, path), ops, signal)
          const inside = isInside(root.path, env.cwd)
          const lines = sorted.slice(0, SHOWN).map(path => (inside ? path : join(root.path, path)))
          const notes: string[] = []
          if (sorted.length > SHOWN) notes.push(`(showing the newest ${SHOWN} of ${sorted.length} files)`)
          if (partial)
            notes.push(partial === 'time' ? '(the search was stopped after 20 s; there may be more)' : '(too many files; there are more)')
          return { output: [...(lines.length > 0 ? lines : ['No files found.']), ...notes].join('\n') }
        }
      }
    }
  }
}
