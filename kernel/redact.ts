/** Takes secrets out of a finished log line: by key at any depth, and by shape wherever they stand in a text. */

const keys = '[\\w-]*(?:token|authorization|api[_-]?key|password|passwd|cookie|secret|credential)'

/** Key and value of one JSON member. The group of backslashes also finds JSON that was logged inside a string. */
const member = new RegExp(`(\\\\*")(${keys})\\1(\\s*:\\s*)(?:\\1(?:(?!\\1).)*\\1|\\[[^\\]]*\\]|-?\\d[\\d.]*)`, 'gi')

const shapes: readonly (readonly [RegExp, string])[] = [
  [/\bBearer\s+[A-Za-z0-9._~+/=-]{6,}/g, 'Bearer [redacted]'],
  [/\bsvc-code\.bearer\.[A-Za-z0-9._~+/=-]+/g, 'svc-code.bearer.[redacted]'],
  [/([#?&](?:token|access_token|key|api_key)=)[A-Za-z0-9._~+/=%-]+/g, '$1[redacted]'],
  [/\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[a-z])[-_][A-Za-z0-9_-]{8,}/g, '[redacted]'],
  [/\bAIza[A-Za-z0-9_-]{30,}/g, '[redacted]'],
  [/\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/g, '[redacted]']
]

/** Keeps the line valid JSON. */
export function redactLine(line: string): string {
  let text = line.replace(member, '$1$2$1$3$1[redacted]$1')
  for (const [shape, replacement] of shapes) text = text.replace(shape, replacement)
  return text
}
