/** Wires the searches for files: by name and by content, in sessions and in workspaces. */
import { AppError, type BodyOf, definePack, headOf, milliseconds, Type } from '../../kernel/index.ts'
import { SessionMissing, Sessions } from '../sessions/index.ts'
import { WorkspaceMissing, Workspaces } from '../workspaces/index.ts'
import { grepFiles, searchNames, searchWorkspaceNames, suggestNames } from './contract.ts'
import { Names } from './names.ts'
import { assertLocal, assertSearchable, rootAt, rootOf, workspaceDirectory } from './place.ts'

type Wanted = Omit<BodyOf<typeof suggestNames>, 'workspace' | 'show_hidden'>

/** Longer queries are no names. */
const QUERY_CHARS = 512

export default definePack({
  name: 'file-search',
  description: 'Searches for files by name and by content',
  area: 'Files',
  needs: { sessions: Sessions, workspaces: Workspaces },
  config: Type.Object({
    grep_ms: milliseconds({ minimum: 1, default: 30_000, description: 'time limit of a search by content' }),
    names_idle_ms: milliseconds({
      minimum: 1,
      default: 60_000,
      description: 'names of files are forgotten this long after the last search'
    })
  }),
  setup(ctx, { sessions, workspaces }) {
    const names = new Names(ctx.config.names_idle_ms)
    ctx.own(() => names.close())

    async function find(mode: 'fuzzy' | 'suggest', path: string, wanted: Wanted, show_hidden: boolean, signal: AbortSignal) {
      const root = await rootAt(path)
      await assertSearchable(root)
      const { query, limit, follow_gitignore, include_globs: include = [], exclude_globs: exclude = [] } = wanted
      if (query.length > QUERY_CHARS) return { items: [], truncated: false }
      const asked = { mode, root: root.real, follow_gitignore, show_hidden, query, limit, include, exclude }
      const { items, truncated } = await names.find(asked, signal)
      return { items: [...items], truncated }
    }
    /** An id, or a directory that is registered now. */
    async function directoryOf(workspace: string): Promise<string> {
      const found = await workspaceDirectory(workspaces, workspace)
      if (found === undefined) throw new AppError(WorkspaceMissing, { message: `workspace ${headOf(workspace, 500)} not found` })
      return found
    }

    ctx.route(searchNames, async input => {
      const { session_id } = input.params
      const state = await sessions.state(session_id)
      const cwd = state?.cwd ?? (await workspaceDirectory(workspaces, session_id))
      if (cwd === undefined) throw new AppError(SessionMissing)
      const { body } = input
      assertLocal(body.runtime_id)
      return await find('fuzzy', cwd, body, false, input.signal)
    })
    ctx.route(searchWorkspaceNames, async ({ body, signal }) => {
      assertLocal(body.runtime_id)
      return await find('fuzzy', await directoryOf(body.workspace), body, false, signal)
    })
    ctx.route(suggestNames, async ({ body, signal }) => {
      assertLocal(body.runtime_id)
      return await find('suggest', await directoryOf(body.workspace), body, body.show_hidden, signal)
    })
    ctx.route(grepFiles, async input => {
      const { root, body } = await rootOf(sessions, input.params.session_id, input)
      await assertSearchable(root)
      const { grep } = await import('./grep.ts')
      return await grep(root.real, body, ctx.config.grep_ms, input.signal)
    })
  }
})
