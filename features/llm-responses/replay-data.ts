/** Encrypted reasoning as the signature of a thinking part: `responses:<item id>:<content>`. */

const MARK = 'responses:'

/** What must go back with reasoning. */
export interface ReplayData {
  /** Id of the reasoning item; may be empty. */
  readonly id: string
  readonly encrypted_content: string
}

/** As the signature of a thinking part. */
export function writeReplayData({ id, encrypted_content }: ReplayData): string {
  return `${MARK}${id.replaceAll(':', '')}:${encrypted_content}`
}

/** Undefined for the signatures of other protocols. */
export function readReplayData(signature: string | undefined): ReplayData | undefined {
  if (!signature?.startsWith(MARK)) return undefined
  const [id = '', ...rest] = signature.slice(MARK.length).split(':')
  return { id, encrypted_content: rest.join(':') }
}
