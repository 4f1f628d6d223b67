/** What an upstream wants back with reasoning and calls, kept in the history as signatures and extras. It goes back to the same model only. */
import { parseJson, recordOf, stringOf } from '../llm/index.ts'

const MARK = 'chat:'

/** How reasoning came. */
export interface ReplayData {
  /** Upstream name of the model. */
  readonly model: string
  /** Field that carried it. */
  readonly key: string
  /** Entry of `reasoning_details` without its text: type, format, signature, encrypted data. */
  readonly entry?: Readonly<Record<string, unknown>>
}

/** As the signature of a thinking part. */
export function writeReplayData(replay: ReplayData): string {
  return MARK + JSON.stringify(replay)
}

/** Undefined for the signatures of other protocols. */
export function readReplayData(signature: string | undefined): ReplayData | undefined {
  if (!signature?.startsWith(MARK)) return undefined
  const { model, key, entry } = recordOf(parseJson(signature.slice(MARK.length)))
  if (typeof model !== 'string' || typeof key !== 'string') return undefined
  return { model, key, ...(entry !== undefined && { entry: recordOf(entry) }) }
}

const extraNames = { model: 'chat_model', extra: 'chat_extra' } as const

/** Extras of a call whose delta brought `extra_content` along (thought signatures of some upstreams). */
export function writeExtra(model: string, extra: unknown): Readonly<Record<string, string>> | undefined {
  return extra === undefined || extra === null ? undefined : { [extraNames.model]: model, [extraNames.extra]: JSON.stringify(extra) }
}

/** The `extra_content` of a call that came from this model. */
export function readExtra(model: string, extras: Readonly<Record<string, string>> | undefined): unknown {
  return extras?.[extraNames.model] === model ? parseJson(stringOf(extras[extraNames.extra])) : undefined
}

/** The same without the thought signature in it: what one provider of this wire documents for calls whose signature stays away. */
export function unsigned(extra: unknown): unknown {
  const { google } = recordOf(extra)
  const { thought_signature } = recordOf(google)
  if (thought_signature === undefined) return extra
  return { ...recordOf(extra), google: { ...recordOf(google), thought_signature: 'skip_thought_signature_validator' } }
}
