/**
 * What the provider wants back: encrypted reasoning as the signature of a thinking part (`responses:<item id>:<content>`), plain reasoning as
 * one that names its model (`responses:<JSON>`), the phase of a message as that of a text.
 */
import { parseJson, recordOf, stringOf } from '../llm/index.ts'

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

/** Undefined for plain reasoning and the signatures of other protocols. */
export function readReplayData(signature: string | undefined): ReplayData | undefined {
  if (!signature?.startsWith(MARK) || readPlain(signature)) return undefined
  const [id = '', ...rest] = signature.slice(MARK.length).split(':')
  return { id, encrypted_content: rest.join(':') }
}

/** Reasoning that came as plain text. Without what only its own provider can read, it goes back to the same model alone. */
export interface PlainReasoning {
  /** Upstream name. */
  readonly model: string
  /** Id of the reasoning item; may be empty. */
  readonly id: string
}

/** As the signature of a thinking part. */
export function writePlain({ model, id }: PlainReasoning): string {
  return MARK + JSON.stringify({ model, id })
}

/** Undefined for every other signature. */
export function readPlain(signature: string | undefined): PlainReasoning | undefined {
  if (!signature?.startsWith(`${MARK}{`)) return undefined
  const { model, id } = recordOf(parseJson(signature.slice(MARK.length)))
  return { model: stringOf(model), id: stringOf(id) }
}

/** The phase that a message belongs to (commentary, final answer), as the signature of its text. */
export function writePhase(phase: string): string {
  return MARK + phase
}

/** Undefined for the texts of other protocols, and for those that belong to none. */
export function readPhase(signature: string | undefined): string | undefined {
  return signature?.startsWith(MARK) ? signature.slice(MARK.length) : undefined
}
