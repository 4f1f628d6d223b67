/** Sends a request that was refused for its form once more, in a form that the provider takes. */
import { definePack, defineSlot } from '../../kernel/index.ts'
import { TurnHooks, type TurnInfo } from '../agent/index.ts'
import { type LlmError, RequestForms } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { demandedForms } from './demanded-forms.ts'
import { outputLimits } from './output-limits.ts'
import { refusedFields } from './refused-fields.ts'
import { Repairs } from './repairs.ts'

export default definePack({
  name: 'request-repair',
  description: 'Sends refused model requests again: fewer images, no earlier thinking, no unknown fields, a stricter form',
  area: 'Agent',
  needs: { hooks: TurnHooks },
  setup(ctx, { hooks }) {
    const slot = defineSlot<Repairs, AgentHost>('request-repairs', () => new Repairs())
    ctx.slot(slot)
    const told = ({ alias }: { readonly alias: string }, field: string) =>
      ctx.log.warn({ model: alias, field }, 'requests to a model go out without a field that its server does not know')
    ctx.contribute(RequestForms, refusedFields(told))
    const demanded = ({ alias }: { readonly alias: string }, form: string) =>
      ctx.log.warn({ model: alias, form }, 'requests to a model go out in the form that its server demands')
    ctx.contribute(RequestForms, demandedForms(demanded))
    const limited = ({ alias }: { readonly alias: string }, limit: number) =>
      ctx.log.warn({ model: alias, limit }, 'requests to a model ask for answers of no more tokens than its server allows')
    ctx.contribute(RequestForms, outputLimits(limited))

    ctx.tap(hooks.beforeStep, (request, { agent, turn_id }) => agent.get(slot).apply(turn_id, request), { stage: 100 })
    const learn = (error: LlmError, { agent, turn_id, step }: TurnInfo): 'retry' | undefined => {
      const next = agent.get(slot).learn(error)
      if (next === undefined) return undefined
      ctx.log.warn(
        { session_id: agent.session.id, turn_id, step, status: error.status, next },
        'a model request is sent again in another form'
      )
      return 'retry'
    }
    ctx.tap(hooks.modelError, learn, { stage: 100 })
  }
})
