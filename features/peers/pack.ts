/** Wires the mesh of the servers of one home: opened behind the start, so that a server alone waits for nothing. */
import { definePack, KernelInfo, Relays } from '../../kernel/index.ts'
import { hasEntries } from './directory.ts'
import type { Mesh } from './mesh.ts'
import { ownerHook, Unreached } from './owner.ts'
import { Peers, PeerTopics } from './service.ts'

/** A start waits so long for servers that are there already. */
const startMs = 500

export default definePack({
  name: 'peers',
  version: '1.0.0',
  description: 'Servers of one home: who has a session answers for it, whichever of them is asked',
  area: 'Server',
  needs: { kernel: KernelInfo, relays: Relays },
  provides: [Peers],
  setup(ctx, { kernel, relays }) {
    const topics = ctx.collect(PeerTopics)
    const owner = ownerHook()
    let mesh: Mesh | undefined
    let opening: Promise<void> | undefined
    const open = async () => {
      const { Mesh } = await import('./mesh.ts')
      const { server_id } = kernel
      if (ctx.signal.aborted) return
      const made = new Mesh({ home: ctx.home, server_id, log: ctx.log, relays, topics: () => topics.items(), owner })
      ctx.own(() => made.close())
      mesh = made
      await made.open()
    }
    const begin = () => {
      opening ??= new Promise<void>(resolve => setImmediate(resolve))
        .then(open)
        .catch(err => ctx.log.warn({ err }, 'other servers of this home cannot be reached, and do not reach this one'))
      return opening
    }
    ctx.provide(Peers, {
      server_id: kernel.server_id,
      owner,
      servers: () => mesh?.servers() ?? [],
      silent: id => mesh?.silent(id) ?? true,
      place: id => mesh?.place(id),
      tell(topic, payload, id) {
        const one = id === undefined ? undefined : mesh?.link(id)
        for (const link of id === undefined ? (mesh?.links() ?? []) : one ? [one] : []) link.tell(topic, payload)
      },
      async ask(id, topic, payload) {
        const link = mesh?.link(id)
        if (!link) throw new Unreached()
        return await link.ask(topic, payload)
      }
    })
    ctx.tap(ctx.hooks.started, async () => {
      const begun = begin()
      // Alone it opens its port behind the start.
      if (await hasEntries(ctx.home)) await Promise.race([begun, new Promise(resolve => setTimeout(resolve, startMs).unref())])
    })
  }
})
