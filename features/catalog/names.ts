/** Words of the public directory format: SDK packages and provider ids from which a wire protocol is told. */
import type { DirectoryEntry } from './contract.ts'

type Wire = NonNullable<DirectoryEntry['wire_type']>

/** First rule that fits wins. `sdk` and `id` are looked for inside the lower-cased package name and provider id. */
export const wireRules: readonly { readonly wire: Wire; readonly sdk: readonly string[]; readonly id: readonly string[] }[] = [
  { wire: 'compat_messages', sdk: ['anthropic'], id: ['anthropic', 'claude'] },
  { wire: 'compat_cloud', sdk: [], id: ['vertex'] },
  { wire: 'compat_genai', sdk: ['google'], id: ['google', 'gemini'] },
  { wire: 'compat_chat', sdk: ['openai'], id: ['openai'] }
]

/** SDKs with a protocol of their own that no adapter speaks. */
export const proprietarySdks = ['amazon-bedrock', 'cohere'] as const

/**
 * Endpoints that an SDK knows by itself, so that entries do not name them. `sdk`: of this protocol only this package does; with any
 * other the endpoint must be named. Without `sdk` all of the protocol do.
 */
export const sdkEndpoints: Readonly<Partial<Record<Wire, { readonly sdk?: string; readonly url: string }>>> = {
  compat_chat: { sdk: '@ai-sdk/openai', url: 'https://api.openai.com/v1' },
  compat_responses: { sdk: '@ai-sdk/openai', url: 'https://api.openai.com/v1' },
  compat_messages: { sdk: '@ai-sdk/anthropic', url: 'https://api.anthropic.com' },
  compat_genai: { url: 'https://generativelanguage.googleapis.com' },
  compat_cloud: { url: 'https://aiplatform.googleapis.com' }
}
