/** Fields that servers refused by name: requests to the same model go out without them, whoever asks. */
import type { LlmRequest, RequestForm } from '../llm/index.ts'
import { refusedField } from './causes.ts'
import { PerModel } from './per-model.ts'

/** `told`: hears of each that is left out from now on. */
export function refusedFields(told: (model: LlmRequest['model'], field: string) => void): RequestForm {
  const known = new PerModel<string>()
  return {
    fit(request) {
      const left_out = known.of(request)
      return left_out.length > 0 ? { ...request, left_out } : request
    },
    refused(request, error) {
      const field = refusedField(error, request)
      if (field === undefined || request.left_out?.includes(field)) return false
      // Not new: another request was told at the same time.
      if (known.add(request, field)) told(request.model, field)
      return true
    }
  }
}
