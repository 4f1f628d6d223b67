/** The fields `model` and `thinking` of `agent_config` (contract 2, profile update). */
import { AppError, invalid, type PackContext } from '../../kernel/index.ts'
import { CredentialRejected, ModelUnresolved, NoCredential, NoProvider } from '../llm/index.ts'
import { AgentConfigHandlers, type Session } from '../sessions/index.ts'
import type { Agent } from './service.ts'

export function contributeFields(ctx: Pick<PackContext, 'contribute'>, mainOf: (session: Session) => Promise<Agent>): void {
  ctx.contribute(AgentConfigHandlers, {
    field: 'model',
    order: 10,
    async apply(session, value) {
      if (value === '') return
      const agent = await mainOf(session)
      await agent.configure({ model: String(value) }).catch((error: unknown) => {
        throw isUnusable(error) ? invalid([{ path: 'model', message: error.message }], error) : error
      })
    }
  })
  ctx.contribute(AgentConfigHandlers, {
    field: 'thinking',
    order: 20,
    apply: async (session, value) => (await mainOf(session)).configure({ thinking: String(value) })
  })
}

/** No provider, no credential, no such model: to a profile update all of them are a model that cannot be set. */
function isUnusable(error: unknown): error is AppError {
  return AppError.is(error) && [NoProvider, NoCredential, CredentialRejected, ModelUnresolved].some(({ code }) => code === error.spec.code)
}
