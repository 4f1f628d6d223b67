/** Fields that servers refused by name: requests to the same model go out without them, whoever asks. */
import type { LlmError, LlmRequest, RequestForm } from '../llm/index.ts'
import { refusedField } from './causes.ts'

const REMEMBERED_MODELS = 256

/** `told`: hears of each that is left out from now on. */
export function refusedFields(told: (model: LlmRequest['model'], field: string) => void): RequestForm {
  const known = new Map<string, readonly string[]>()
  const fieldsOf = ({ model }: LlmRequest) => known.get(key(model)) ?? []
  return {
    fit(request) {
      const left_out = fieldsOf(request)
      return left_out.length > 0 ? { ...request, left_out } : request
    },
    refused(request: LlmRequest, error: LlmError) {
      const field = refusedField(error, request)
      if (field === undefined || request.left_out?.includes(field)) return false
      const before = fieldsOf(request)
      if (before.includes(field)) return true // another request was told at the same time
      if (known.size >= REMEMBERED_MODELS) known.delete(known.keys().next().value ?? '')
      known.set(key(request.model), [...before, field])
      told(request.model, field)
      return true
    }
  }
}

const key = ({ base_url, protocol, name }: LlmRequest['model']) => JSON.stringify([base_url, protocol, name])
