/** Updating the profile of a session (contract 2): title, metadata and, by handlers of other packs, the configuration of its main agent. */
import { type Accounts, AppError, type Collection, type Static, within } from '../../kernel/index.ts'
import { updateProfile } from './contract.ts'
import { customMetadata } from './create.ts'
import type { AgentConfigHandler, Session } from './service.ts'

type Handlers = Pick<Collection<AgentConfigHandler>, 'items' | 'entries'>
type ProfileChange = Static<NonNullable<typeof updateProfile.body>>

/** The route, with the errors of those who apply fields. */
export function profileRoute(handlers: Handlers): typeof updateProfile {
  return Object.defineProperty({ ...updateProfile }, 'errors', {
    get: () => [...(updateProfile.errors ?? []), ...handlers.items().flatMap(handler => handler.errors ?? [])]
  })
}

/** In the contract's order: title, metadata, agent_config. Earlier steps stay when a later one fails. */
export async function applyProfile(session: Session, change: ProfileChange, handlers: Handlers, accounts: Accounts): Promise<void> {
  session.assertWritable()
  const { title, metadata, agent_config } = change
  if (title !== undefined) await session.entitle(title, 'custom')
  if (metadata) {
    await session.update(state => ({ ...state, metadata: { ...state.metadata, ...customMetadata(metadata) } }), { touch: true })
  }
  const wanted: Readonly<Record<string, unknown>> = agent_config ?? {}
  const done = new Set<string>()
  for (const { pack, item } of [...handlers.entries()].sort((a, b) => a.item.order - b.item.order)) {
    const { field } = item
    const value = wanted[field]
    if (value === undefined || done.has(field)) continue
    done.add(field)
    const what = `handler of agent_config.${field}`
    try {
      await accounts.onAccountOf(pack, what, () => item.apply(session, value))
    } catch (error) {
      if (!AppError.is(error)) accounts.blame(pack, what, error)
      throw within('body.agent_config', error)
    }
  }
}
