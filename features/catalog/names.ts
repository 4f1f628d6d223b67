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

/** SDKs that know the endpoint of their one provider; of others an entry must name it. */
export const sdkWithEndpoint: Readonly<Partial<Record<Wire, string>>> = {
  compat_chat: '@ai-sdk/openai',
  compat_responses: '@ai-sdk/openai',
  compat_messages: '@ai-sdk/anthropic'
}
