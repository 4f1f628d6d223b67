/** Sends a request in the form that its server takes. */
import type { Collection } from '../../kernel/index.ts'
import type { LlmPart, LlmRequest } from './request.ts'
import type { RequestForm } from './service.ts'
import { Tries } from './tries.ts'

/** Refusals of one request that are answered with another form. */
const MOST = 8

/** Sends the request, and again in another form as long as it is refused before anything came and a form knows one. */
export function sendInForm(
  request: LlmRequest,
  forms: Pick<Collection<RequestForm>, 'items'>,
  send: (request: LlmRequest) => AsyncIterable<LlmPart>
): AsyncIterable<LlmPart> {
  let fitted = request
  let again = 0
  return new Tries(refused => {
    if (refused && !(again++ < MOST && forms.items().some(form => form.refused(fitted, refused)))) return undefined
    fitted = forms.items().reduce((given, form) => form.fit(given), request)
    return send(fitted)
  })
}
