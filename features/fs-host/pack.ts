/** Wires the file system of the server's machine. */
import { definePack, homeOfUser } from '../../kernel/index.ts'
import { Workspaces } from '../workspaces/index.ts'
import { browseDirectories, makeHostDirectory, readHome, readHostFile } from './contract.ts'

/** Roots that are told. */
const RECENT = 8

export default definePack({
  name: 'fs-host',
  description: "Directories and files of the server's machine",
  area: 'Files',
  optional: { workspaces: Workspaces },
  setup(ctx, { workspaces }) {
    const host = () => import('./host.ts')
    ctx.route(browseDirectories, async ({ query: { path } }) => {
      const { assertAbsolute, browse } = await host()
      if (path !== undefined) assertAbsolute(path, 'query.path')
      return await browse(path)
    })
    ctx.route(readHome, async () => {
      const known = (await workspaces()?.list()) ?? []
      const recent = [...known].sort((a, b) => (a.last_opened_at < b.last_opened_at ? 1 : a.last_opened_at > b.last_opened_at ? -1 : 0))
      return { home: homeOfUser(), recent_roots: recent.slice(0, RECENT).map(({ root }) => root) }
    })
    ctx.route(readHostFile, async ({ query: { path } }) => {
      const { assertAbsolute, hostFile } = await host()
      assertAbsolute(path, 'query.path')
      return await hostFile(path)
    })
    ctx.route(makeHostDirectory, async ({ body: { path } }) => {
      const { assertAbsolute, makeDirectory } = await host()
      assertAbsolute(path, 'body.path')
      await makeDirectory(path)
      return { path }
    })
  }
})
