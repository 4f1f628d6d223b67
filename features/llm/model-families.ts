/** What well-known models can do, by the beginning of their names. Data only; what a model record declares comes on top. */
import { remembered } from './remembered.ts'

const families: readonly (readonly [name: RegExp, capabilities: readonly string[]])[] = [
  [/^gpt-4(o|\.1|\.5|-turbo)/, ['image_in']],
  [/^(chatgpt-4o|codex-mini)/, ['image_in']],
  [/^gpt-[5-9]/, ['image_in', 'thinking']],
  [/^gpt-oss/, ['thinking']],
  [/^o1-mini|^o3-mini/, ['thinking', 'always_thinking']],
  [/^o[1-9]/, ['image_in', 'thinking', 'always_thinking']],
  [/^claude-3[-.]7/, ['image_in', 'thinking']],
  [/^claude-3/, ['image_in']],
  [/^claude-(opus|sonnet|haiku|[4-9])/, ['image_in', 'thinking']],
  [/^gemini-(2\.5|[3-9])/, ['image_in', 'thinking']],
  [/^gemini-/, ['image_in']],
  [/^gemma-?3/, ['image_in']],
  [/^deepseek-(reasoner|r1)/, ['thinking', 'always_thinking']],
  [/^deepseek-(v[4-9]|v3\.[1-9])/, ['thinking']],
  [/^kimi-k2-thinking/, ['thinking', 'always_thinking']],
  [/^kimi-k2\.[5-9]/, ['image_in', 'thinking']],
  [/^(qwq|qvq)/, ['thinking', 'always_thinking']],
  [/^qwen[23]?(\.\d)?-?vl/, ['image_in']],
  [/^qwen3/, ['thinking']],
  [/^glm-[45](\.\d)?v/, ['image_in', 'thinking']],
  [/^glm-(4\.[5-9]|[5-9])/, ['thinking']],
  [/^grok-(3-mini|code)/, ['thinking']],
  [/^grok-[4-9]/, ['image_in', 'thinking']],
  [/^magistral/, ['thinking']],
  [/^(pixtral|mistral-(small|medium)-(3|2[5-9])|llama-?4)/, ['image_in']],
  [/^minimax-m[1-9]/, ['thinking']]
]

/** Capabilities of a model by its upstream name; a path in front (`vendor/`, `models/`) does not count. Empty for names that nobody knows. */
export const knownCapabilities = remembered((model_name: string): readonly string[] => {
  const name = model_name.toLowerCase().replace(/^.*[/:](?=[a-z])/, '')
  return families.find(([pattern]) => pattern.test(name))?.[1] ?? []
})
