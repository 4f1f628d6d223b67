/** Fixed texts that the model reads when a call did not end by itself. */

const USER_ABORT = 'The user interrupted this tool call on purpose. Do not repeat it on your own; wait for what the user says next.'
const ABORT = 'The tool call was aborted before it finished.'

/** Text of a call whose predecessor in the same response ended the turn. */
export const SKIPPED = 'skipped because a previous tool call stopped the turn'

/** Text of a call that nobody can permit. */
export const NO_AUTHORITY = 'No tool can run: no pack of this server decides which calls are permitted (permissions).'

/** Text of a call about which a guard or the authority said something that is neither yes nor no. */
export const UNCLEAR = 'The call was not made: it was neither permitted nor refused.'

/** Text in place of an empty result. */
export const EMPTY = '(the tool finished; its output is empty)'

/** Leading text of a result that holds media only. */
export const MEDIA_ONLY = '(the output follows as media)'

/** Whether a turn was aborted by its user: the abort reason is an error (or object) named `UserAbort`. */
export function isUserAbort(signal: AbortSignal): boolean {
  const reason: unknown = signal.reason
  return typeof reason === 'object' && reason !== null && 'name' in reason && reason.name === 'UserAbort'
}

/** What the model is told about a call that the abort ended. */
export function abortText(signal: AbortSignal): string {
  return isUserAbort(signal) ? USER_ABORT : ABORT
}
