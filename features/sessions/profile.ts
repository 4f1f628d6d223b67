/** Updating the profile of a session (contract 2): title, metadata and, by handlers of other packs, the configuration of its main agent. */
import { type Collection, type Static, within } from '../../kernel/index.ts'
import { updateProfile } from './contract.ts'
import { customMetadata } from './create.ts'
import type { AgentConfigHandler, Session } from './service.ts'

type Handlers = Pick<Collection<AgentConfigHandler>, 'items'>
type ProfileChange = Static<NonNullable<typeof updateProfile.body>>

/** The route, with the errors of those who apply fields. */
export function profileRoute(handlers: Handlers): typeof updateProfile {
  return Object.defineProperty({ ...updateProfile }, 'errors', {
    get: () => [...(updateProfile.errors ?? []), ...handlers.items().flatMap(handler => handler.errors ?? [])]
  })
}

/** In the contract's order: title, metadata, agent_config. Earlier steps stay when a later one fails. */
export async function applyProfile(session: Session, change: ProfileChange, handlers: Handlers): Promise<void> {
  session.assertWritable()
  const { title, metadata, agent_config } = change
  if (title !== undefined) await session.entitle(title, 'custom')
  if (metadata) {
    await session.update(state => ({ ...state, metadata: { ...state.metadata, ...customMetadata(metadata) } }), { touch: true })
  }
  const wanted: Readonly<Record<string, unknown>> = agent_config ?? {}
  const done = new Set<string>()
  for (const handler of [...handlers.items()].sort((a, b) => a.order - b.order)) {
    const value = wanted[handler.field]
    if (value === undefined || done.has(handler.field)) continue
    done.add(handler.field)
    await handler.apply(session, value).catch((error: unknown) => {
      throw within('body.agent_config', error)
    })
  }
}
