/** Wires the workspaces pack: registry, trust, routes and global events. */
import { AppError, definePack, globalStream } from '../../kernel/index.ts'
import {
  deleteWorkspace,
  listWorkspaces,
  readTrust,
  registerWorkspace,
  registryStore,
  renameWorkspace,
  trustStore,
  trustWorkspace,
  untrustWorkspace,
  type Workspace,
  workspaceCreated,
  workspaceDeleted,
  workspaceUpdated
} from './contract.ts'
import { Latest } from './latest.ts'
import { emptyRegistry, Registry, type Written } from './registry.ts'
import { assertDirectory, workspaceId } from './root.ts'
import { SessionCounter, WorkspaceMissing, type WorkspaceRecord, Workspaces } from './service.ts'
import { emptyTrust, Trust } from './trust.ts'

export default definePack({
  name: 'workspaces',
  description: 'Registered project directories and the trust in them',
  area: 'Sessions',
  optional: { counter: SessionCounter },
  provides: [Workspaces],
  setup(ctx, { counter }) {
    const inHome = { dir: '.' }
    const registry = new Registry(
      new Latest({ store: ctx.store(registryStore, inHome), id: 'workspaces', dir: ctx.home, empty: emptyRegistry })
    )
    const trust = new Trust(new Latest({ store: ctx.store(trustStore, inHome), id: 'trust', dir: ctx.home, empty: emptyTrust }))
    const emitCreated = ctx.event(workspaceCreated)
    const emitUpdated = ctx.event(workspaceUpdated)
    const emitDeleted = ctx.event(workspaceDeleted)
    const time = () => ctx.now().toISOString()

    type Counts = ReadonlyMap<string, number> | undefined
    const toWire = ({ record, ids }: Written, counts: Counts): Workspace => {
      let session_count = 0
      for (const id of ids) session_count += counts?.get(id) ?? 0
      return { ...record, session_count }
    }
    /** What is registered is told, also where the disk does not say how many sessions it has. */
    async function announce(written: Written, created: boolean): Promise<Workspace> {
      const workspace = toWire(
        written,
        await counter()
          ?.counts()
          .catch(() => undefined)
      )
      const emit = created ? emitCreated : emitUpdated
      emit({ ...workspace, workspace })
      return workspace
    }
    async function register(root: string, name: string | undefined, field: string) {
      await assertDirectory(root, field)
      return await registry.register(root, name, time())
    }
    const missing = (id: string) => new AppError(WorkspaceMissing, { message: `workspace ${id} not found` })
    async function known(id: string): Promise<WorkspaceRecord> {
      const record = await registry.get(id)
      if (!record) throw missing(id)
      return record
    }

    ctx.provide(Workspaces, {
      list: async () => [...(await registry.view()).listed],
      get: id => registry.get(id),
      aliases: async id => (await registry.view()).ids.get(id) ?? [id],
      register: async (root, use) => {
        const { created, ...written } = await register(root, undefined, '')
        try {
          return await use(written.record)
        } finally {
          await announce(written, created)
          await ctx.streams.flushed(globalStream) // what is told of the session behind it is of another journal
        }
      },
      idOf: workspaceId,
      trusted: id => trust.of(id),
      onTrustChange: listener => trust.onChange(listener)
    })

    ctx.route(listWorkspaces, async () => {
      const counts = await counter()?.counts()
      const { listed, ids } = await registry.view()
      return { items: listed.map(record => toWire({ record, ids: ids.get(record.id) ?? [record.id] }, counts)) }
    })
    ctx.route(registerWorkspace, async ({ body: { root, name } }) => {
      const { created, ...written } = await register(root, name, 'body.root')
      return announce(written, created)
    })
    ctx.route(renameWorkspace, async ({ params: { workspace_id }, body: { name } }) => {
      const written = await registry.rename(workspace_id, name)
      if (!written) throw missing(workspace_id)
      return announce(written, false)
    })
    ctx.route(deleteWorkspace, async ({ params: { workspace_id } }) => {
      const withdraw = async (ids: readonly string[] = []) => {
        for (const id of ids) await trust.set(id, false, time())
      }
      await withdraw((await registry.view()).ids.get(workspace_id)) // first: whoever registers it again is asked anew
      const removed = await registry.remove(workspace_id)
      if (!removed) throw missing(workspace_id)
      await withdraw(removed.ids) // somebody may have given it in between
      emitDeleted({ workspace_id, root: removed.record.root })
      return { deleted: true as const }
    })
    ctx.route(readTrust, async ({ params: { workspace_id } }) => {
      await known(workspace_id)
      return { trusted: await trust.of(workspace_id) }
    })
    ctx.route(trustWorkspace, async ({ params: { workspace_id } }) => {
      await known(workspace_id)
      await trust.set(workspace_id, true, time())
      return { trusted: true as const }
    })
    ctx.route(untrustWorkspace, async ({ params: { workspace_id } }) => {
      await known(workspace_id)
      await trust.set(workspace_id, false, time())
      return { trusted: false as const }
    })
  }
})
