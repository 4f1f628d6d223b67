/** Sends a request in the form that its server takes. */
import type { LlmError, LlmPart, LlmRequest } from './request.ts'
import type { RequestForm } from './service.ts'

/** Refusals of one request that are answered with another form. */
const MOST = 8

/**
 * Sends the request, and again in another form as long as it is refused before anything came and a form knows one. A form that throws has no
 * say; `failed` hears of it.
 */
export async function* sendInForm(
  request: LlmRequest,
  forms: () => readonly RequestForm[],
  send: (request: LlmRequest) => AsyncIterable<LlmPart>,
  failed: (error: unknown) => void
): AsyncGenerator<LlmPart, void, undefined> {
  const asked = <T>(work: () => T, otherwise: T): T => {
    try {
      return work()
    } catch (error) {
      failed(error)
      return otherwise
    }
  }
  for (let again = 0; ; again++) {
    const fitted = forms().reduce((given, form) => asked(() => form.fit(given), given), request)
    const helps = (error: LlmError) => again < MOST && forms().some(form => asked(() => form.refused(fitted, error), false))
    let begun = false
    let refused = false
    for await (const part of send(fitted)) {
      refused = !begun && part.type === 'error' && helps(part.error)
      if (refused) break
      begun = true
      yield part
    }
    if (!refused) return
  }
}
