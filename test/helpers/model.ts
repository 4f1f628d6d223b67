/** A resolved model with everything a test does not care about filled in. */
import type { ResolvedModel } from '../../features/llm/index.ts'

/** Alias `p/m` of provider `p`: chat completions, a window of 1,000 tokens, no capabilities, no URL, no key. */
export function resolvedModel(change: Partial<ResolvedModel> = {}): ResolvedModel {
  return {
    alias: 'p/m',
    provider_id: 'p',
    protocol: 'compat_chat',
    name: 'm',
    display_name: 'M',
    headers: {},
    max_context_size: 1000,
    capabilities: [],
    ...change
  }
}
