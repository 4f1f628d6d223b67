/** Thought signatures: on thinking as its signature, on calls as extras. The answer's own is kept as a thinking part without text. */

const THOUGHT = 'genai:'
const ANSWER = 'genai:answer:'

/** Extras of a tool call: the signature of its part, and the id under which the provider knows it. */
export const extraNames = { signature: 'genai_signature', id: 'genai_id' } as const

/** As the signature of a thinking part. */
export function writeReplayData(on: 'thought' | 'answer', signature: string): string {
  return (on === 'answer' ? ANSWER : THOUGHT) + signature
}

/** Undefined for the signatures of other protocols. */
export function readReplayData(signature: string | undefined): { on: 'thought' | 'answer'; signature: string } | undefined {
  if (signature?.startsWith(ANSWER)) return { on: 'answer', signature: signature.slice(ANSWER.length) }
  return signature?.startsWith(THOUGHT) ? { on: 'thought', signature: signature.slice(THOUGHT.length) } : undefined
}
