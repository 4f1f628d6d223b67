/** Shows what the server is made of and how it fares; mounts nothing unless it was asked for, on a loopback address. */
import { definePack, isOpenRoute, KernelInfo, PackControl } from '../../kernel/index.ts'
import { Sessions } from '../sessions/index.ts'
import { listHooks, listJournals, listLoadedSessions, listPacks, listRoutes, readProcess } from './contract.ts'

export default definePack({
  name: 'debug',
  description: 'Debug routes, only with --debug-endpoints and on loopback: packs, hooks, sessions, journals, memory',
  area: 'Server',
  needs: { kernel: KernelInfo, control: PackControl },
  optional: { sessions: Sessions },
  async setup(ctx, { kernel, control, sessions }) {
    if (!kernel.debug_endpoints) return
    const { loopFacts, measureDelay, memoryFacts, resourceCounts } = await import('./process.ts')
    const delay = measureDelay()
    ctx.own(() => void delay.disable())

    ctx.route(listPacks, () => {
      const { routes, events, frames, owners } = kernel.declarations()
      const of = (name: string, specs: readonly object[]) => specs.filter(spec => owners.get(spec)?.name === name).length
      const there = control.list().filter(({ wanted, state }) => wanted || state === 'Unloading')
      return {
        packs: there.map(({ name, state, setup_ms, meta: { waiting_for, error, faults } }) => ({
          ...{ name, state },
          ...(setup_ms === undefined ? {} : { setup_ms }),
          ...(waiting_for === undefined ? {} : { waiting_for: [...waiting_for] }),
          ...(error === undefined ? {} : { error }),
          ...(faults === undefined ? {} : { faults: { ...faults } }),
          ...{ routes: of(name, routes), events: of(name, events), frames: of(name, frames) }
        })),
        setup_ms: rounded(there.reduce((sum, { setup_ms = 0 }) => sum + setup_ms, 0))
      }
    })
    ctx.route(listRoutes, () => {
      const { routes, owners } = kernel.declarations()
      const rows = routes.map(spec => ({
        method: spec.method,
        path: spec.path,
        pack: owners.get(spec)?.name ?? '',
        summary: spec.summary,
        open: isOpenRoute(spec)
      }))
      return { routes: rows.sort((a, b) => compared(a.path, b.path) || compared(a.method, b.method)) }
    })
    ctx.route(listHooks, () => ({
      hooks: kernel.internals().hooks.map(({ taps, ...hook }) => ({ ...hook, taps: taps.map(tap => ({ ...tap })) }))
    }))
    ctx.route(listLoadedSessions, () => ({
      sessions: (sessions()?.allLoaded() ?? []).map(session => ({
        id: session.id,
        workspace_id: session.workspace_id,
        writable: session.writable,
        busy: session.work.busy,
        pending_interaction: session.work.pending_interaction,
        running_turns: [...session.work.activeTurns()],
        agents: session.agents().map(agent => agent.id)
      }))
    }))
    ctx.route(listJournals, () => {
      const { streams, waiting_bytes } = kernel.internals()
      return {
        journals: streams.map(({ session_id, position, kept, subscribers }) => ({
          session_id,
          ...(position ? { epoch: position.epoch, seq: position.seq, written_seq: position.written } : {}),
          ...{ kept, subscribers }
        })),
        waiting_bytes
      }
    })
    ctx.route(readProcess, () => ({
      pid: process.pid,
      started_at: kernel.started_at.toISOString(),
      uptime_s: rounded(process.uptime()),
      event_loop: loopFacts(delay),
      ...memoryFacts(),
      resources: resourceCounts()
    }))
  }
})

const compared = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
const rounded = (value: number) => Math.round(value * 1000) / 1000
