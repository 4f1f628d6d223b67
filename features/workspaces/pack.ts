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
import { emptyRegistry, Registry } from './registry.ts'
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

    async function toWire(records: readonly WorkspaceRecord[]): Promise<Workspace[]> {
      const counts = await counter()?.counts()
      const { ids } = await registry.view()
      return records.map(record => {
        let session_count = 0
        for (const id of ids.get(record.id) ?? [record.id]) session_count += counts?.get(id) ?? 0
        return { ...record, session_count }
      })
    }
    async function announce(record: WorkspaceRecord, created: boolean): Promise<Workspace> {
      const [workspace] = (await toWire([record])) as [Workspace]
      const emit = created ? emitCreated : emitUpdated
      emit({ ...workspace, workspace })
      return workspace
    }
    async function register(root: string, name: string | undefined, field: string) {
      await assertDirectory(root, field)
      return await registry.register(root, name, time())
    }
    async function known(id: string): Promise<WorkspaceRecord> {
      const record = await registry.get(id)
      if (!record) throw new AppError(WorkspaceMissing, { message: `workspace ${id} not found` })
      return record
    }

    ctx.provide(Workspaces, {
      list: async () => [...(await registry.view()).listed],
      get: id => registry.get(id),
      aliases: async id => (await registry.view()).ids.get(id) ?? [id],
      register: async (root, use) => {
        const { record, created } = await register(root, undefined, '')
        try {
          return await use(record)
        } finally {
          await announce(record, created)
          await ctx.streams.flushed(globalStream) // what is told of the session behind it is of another journal
        }
      },
      idOf: workspaceId,
      trusted: id => trust.of(id),
      onTrustChange: listener => trust.onChange(listener)
    })

    ctx.route(listWorkspaces, async () => ({ items: await toWire((await registry.view()).listed) }))
    ctx.route(registerWorkspace, async ({ body: { root, name } }) => {
      const { record, created } = await register(root, name, 'body.root')
      return announce(record, created)
    })
    ctx.route(renameWorkspace, async ({ params: { workspace_id }, body: { name } }) => {
      const record = await registry.rename(workspace_id, name)
      return announce(record ?? (await known(workspace_id)), false)
    })
    ctx.route(deleteWorkspace, async ({ params: { workspace_id } }) => {
      const removed = await registry.remove(workspace_id)
      if (!removed) throw new AppError(WorkspaceMissing, { message: `workspace ${workspace_id} not found` })
      for (const id of removed.ids) await trust.set(id, false, time())
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
