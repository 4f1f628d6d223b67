/** Conversations that servers refused for their form: requests to the same model go out in another one, whoever asks. */
import type { LlmError, LlmMessage, LlmRequest, RequestForm } from '../llm/index.ts'
import { causesOf } from './causes.ts'
import { strictForm } from './forms.ts'
import { PerModel } from './per-model.ts'

/** Form that a server demands: the strict one, or with the field for thinking in every answer. */
type Demand = 'strict form' | 'thinking field'

/** `told`: hears of each that is kept to from now on. */
export function demandedForms(told: (model: LlmRequest['model'], demand: Demand) => void): RequestForm {
  const known = new PerModel<Demand>()
  const strict = new WeakSet<readonly LlmMessage[]>()
  return {
    fit(request) {
      const demands = known.of(request)
      const filled = demands.includes('thinking field') ? { ...request, blank_thinking: true } : request
      if (!demands.includes('strict form')) return filled
      const messages = strictForm(request.messages)
      strict.add(messages)
      return { ...filled, messages }
    },
    refused(request, error) {
      const demand = demandOf(error)
      if (demand === undefined || (demand === 'strict form' ? strict.has(request.messages) : request.blank_thinking)) return false
      // Not new: another request was told at the same time.
      if (known.add(request, demand)) told(request.model, demand)
      return true
    }
  }
}

/** Only where nothing else may be wrong: what other causes cure does not hold for good. */
function demandOf(error: LlmError): Demand | undefined {
  const [cause, ...others] = causesOf(error)
  if (others.length > 0) return undefined
  return cause === 'form' ? 'strict form' : cause === 'reasoning' ? 'thinking field' : undefined
}
