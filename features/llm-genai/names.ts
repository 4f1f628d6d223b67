/** What the wire calls things: the key header, versions, publisher, model families, reasons. Data only; `custom_headers` and `base_url` win. */
import type { FinishReason } from '../llm/index.ts'

/** Carries an API key; access tokens travel as `Authorization: Bearer`. */
export const keyHeader = 'x-goog-api-key'

/** Version in the path when the base URL names none. */
export const versions = { genai: 'v1beta', cloud: 'v1' } as const

/** Host of the cloud for location `global`; other locations stand in front of it, as `<location>-`. */
export const cloudHost = 'aiplatform.googleapis.com'

/** What an access token for models of the cloud must allow. */
export const cloudScope = 'https://www.googleapis.com/auth/cloud-platform'

/** Who gives tokens for a key file that does not say it. */
export const tokenUri = 'https://oauth2.googleapis.com/token'

/** Header with the project that pays for the requests of a user, as opposed to a service account. */
export const payerHeader = 'x-goog-user-project'

/** Publisher of models that do not name theirs. */
export const publisher = 'google'

/** Stands for the signature of a call that has none, where a model wants one (documented under "thought signatures"). */
export const noSignature = 'skip_thought_signature_validator'

/** What the wire takes inline. */
export const imageTypes: readonly string[] = ['image/png', 'image/jpeg', 'image/webp', 'image/heic', 'image/heif']

/** Tokens for the words of an effort; another word thinks as hard as `high`. */
export const budgets: Readonly<Record<string, number>> = { minimal: 1024, low: 1024, medium: 4096, high: 32_000 }

/** Levels for words that the wire does not have; another word goes as it is, in capitals. */
export const levels: Readonly<Record<string, string>> = { xhigh: 'HIGH', max: 'HIGH' }

/** How a family of models is told to think. */
export type Family =
  | { readonly thinks: 'never' }
  /** `off`: the lowest level it has. */
  | { readonly thinks: 'level'; readonly off: string }
  /** `least` and `most` tokens. */
  | { readonly thinks: 'budget'; readonly least: number; readonly most: number }

const families: readonly (readonly [name: RegExp, family: Family])[] = [
  [/gemini-3(\.\d+)?-pro/, { thinks: 'level', off: 'LOW' }],
  [/gemini-([3-9]|\d\d)/, { thinks: 'level', off: 'MINIMAL' }],
  [/gemini-2\.5-pro/, { thinks: 'budget', least: 128, most: 32_768 }],
  [/gemini-2\.5/, { thinks: 'budget', least: 0, most: 24_576 }],
  [/gemini-|gemma-/, { thinks: 'never' }]
]

/** The first family whose name fits the upstream model name; undefined: a model that we do not know. */
export function familyOf(model_name: string): Family | undefined {
  return families.find(([name]) => name.test(model_name.toLowerCase()))?.[1]
}

/** Finish reasons that have a word here; another one is `other`. */
export const reasons: Readonly<Record<string, FinishReason>> = {
  STOP: 'completed',
  MAX_TOKENS: 'truncated',
  SAFETY: 'filtered',
  RECITATION: 'filtered',
  BLOCKLIST: 'filtered',
  PROHIBITED_CONTENT: 'filtered',
  SPII: 'filtered',
  IMAGE_SAFETY: 'filtered',
  IMAGE_PROHIBITED_CONTENT: 'filtered',
  MODEL_ARMOR: 'filtered'
}

/** Finish reasons of an answer that broke off in a call: asked again, the model may make it right, whatever text came before. */
export const brokenCalls: readonly string[] = [
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MISSING_THOUGHT_SIGNATURE',
  'MALFORMED_RESPONSE'
]
