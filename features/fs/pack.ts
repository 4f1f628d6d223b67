/** Wires files in a session: looking, reading, making directories, downloads, and opening them on the user's machine. */
import { AppError, definePack, Type } from '../../kernel/index.ts'
import { directoryOf, type Root, rootAt, rootOf } from '../file-search/index.ts'
import { Sessions } from '../sessions/index.ts'
import { PathDenied, PathMissing } from '../workspaces/index.ts'
import { relativePath } from './boundary.ts'
import {
  downloadFromSession,
  type Entry,
  type Listing,
  listFiles,
  listManyFiles,
  makeDirectory,
  openFile,
  openFileIn,
  readFile,
  revealFile,
  statFile,
  statManyFiles
} from './contract.ts'
import { fileReply } from './download.ts'
import { FileStatuses } from './service.ts'

export default definePack({
  name: 'fs',
  description: 'Files of a session: list, read, stat, make directories, download, open',
  area: 'Files',
  needs: { sessions: Sessions },
  optional: { statuses: FileStatuses },
  config: Type.Object({
    editor_a: Type.String({ minLength: 1, default: 'code', description: 'program of the application editor_a' }),
    editor_b: Type.String({ minLength: 1, default: 'cursor', description: 'program of the application editor_b' })
  }),
  setup(ctx, { sessions, statuses }) {
    const actions = () => import('./actions.ts')
    const statusOf = async (root: Root, paths: readonly string[], options: Listing, signal: AbortSignal) =>
      options.include_git_status ? await statuses()?.below(root, paths, signal) : undefined

    ctx.route(listFiles, async input => {
      const { listDirectory } = await actions()
      const { root, body } = await rootOf(sessions, input.params.session_id, input)
      const path = relativePath(body.path)
      const status = await statusOf(root, [path], body, input.signal)
      const { items, children, truncated } = await listDirectory(root, path, body, status, input.signal)
      return { items, ...(body.depth > 1 ? { children_by_path: Object.fromEntries(children) } : {}), truncated }
    })
    ctx.route(listManyFiles, async input => {
      const { listDirectory } = await actions()
      const { cwd, body } = await directoryOf(sessions, input.params.session_id, input)
      const root = rootAt(cwd) // when it is gone, each path says so
      const status = await root.then(
        there => statusOf(there, body.paths, body, input.signal),
        () => undefined
      )
      const results = new Map<string, Entry[]>()
      const errors = new Map<string, { code: number; msg: string }>()
      const truncated_paths: string[] = []
      const answer = { listed: 0 }
      for (const [at, given] of [...new Set(body.paths)].entries()) {
        try {
          const path = relativePath(given, `body.paths.${at}`)
          const { items, children, truncated } = await listDirectory(await root, path, body, status, input.signal, answer)
          for (const [below, entries] of children) if (!results.has(below)) results.set(below, entries)
          results.set(given, items)
          if (truncated) truncated_paths.push(given)
        } catch (error) {
          if (!AppError.is(error)) throw error
          errors.set(given, { code: error.code, msg: error.message })
        }
      }
      return { results: Object.fromEntries(results), truncated_paths, partial_errors: Object.fromEntries(errors) }
    })
    ctx.route(readFile, async input => {
      const { readPart } = await actions()
      const { root, body } = await rootOf(sessions, input.params.session_id, input)
      return await readPart(root, relativePath(body.path), body)
    })
    ctx.route(statFile, async input => {
      const { detailedEntry } = await actions()
      const { root, body } = await rootOf(sessions, input.params.session_id, input)
      return await detailedEntry(root, relativePath(body.path))
    })
    ctx.route(statManyFiles, async input => {
      const { entryAt } = await actions()
      const { cwd, body } = await directoryOf(sessions, input.params.session_id, input)
      const wanted = new Map(body.paths.map((given, at) => [given, relativePath(given, `body.paths.${at}`)]))
      const root = rootAt(cwd)
      const entries: [string, Entry | null][] = []
      for (const [given, path] of wanted) {
        const entry = await root
          .then(there => entryAt(there, path))
          .catch((error: unknown) => {
            if (AppError.is(error) && (error.code === PathMissing.code || error.code === PathDenied.code)) return null
            throw error
          })
        entries.push([given, entry])
      }
      return { entries: Object.fromEntries(entries) }
    })
    ctx.route(makeDirectory, async input => {
      const { makeIn } = await actions()
      const { root, body } = await rootOf(sessions, input.params.session_id, input)
      return await makeIn(root, relativePath(body.path), body.recursive)
    })

    ctx.route(downloadFromSession, async ({ params, query }) => {
      const { root } = await rootOf(sessions, params.session_id, { body: query })
      const headers = { 'accept-ranges': 'bytes', 'x-content-type-options': 'nosniff' }
      return await fileReply(root, relativePath(params.path, 'params.path'), { disposition: 'attachment', headers })
    })

    ctx.route(openFile, async input => {
      const { launch, openCommands, targetOf } = await actions()
      const { root, body } = await rootOf(sessions, input.params.session_id, input)
      const target = await targetOf(root, relativePath(body.path), body.line)
      await launch(openCommands(target, process.env), target, process.env)
      return { opened: true as const }
    })
    ctx.route(openFileIn, async input => {
      const { appCommands, launch, targetOf } = await actions()
      const { root, body } = await rootOf(sessions, input.params.session_id, input)
      const target = await targetOf(root, relativePath(body.path), body.line)
      await launch(appCommands(body.app_id, target, ctx.config), target, process.env)
      return { opened: true as const }
    })
    ctx.route(revealFile, async input => {
      const { launch, revealCommands, targetOf } = await actions()
      const { root, body } = await rootOf(sessions, input.params.session_id, input)
      const target = await targetOf(root, relativePath(body.path))
      await launch(revealCommands(target), target, process.env)
      return { revealed: true as const }
    })
  }
})
