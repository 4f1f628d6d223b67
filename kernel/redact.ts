/** Takes secrets out of a finished log line: by key at any depth, and by shape wherever they stand in a text. */

/** Longer lines are cut to their head, so that no log call can fill the disk or stall on a pattern. */
const maxChars = 65_536
const headChars = 4_096

const keys = '([\\w-]*(?:token|authorization|api[_-]?key|password|passwd|cookie|secret|credential))'
const text = '"(?:[^"\\\\]|\\\\.)*"'
const number = '-?\\d[\\d.]*'

/** `"token":"..."`, also with a number or a flat list as value. */
const member = new RegExp(`"${keys}"(\\s*:\\s*)(?:${text}|\\[(?:${text}|[^"\\[\\]{}])*\\]|${number})`, 'gi')

/** The same inside a string, where each quote is `\"` and an escaped quote `\\\"`. */
const quotedText = '\\\\"(?:[^"\\\\]|\\\\\\\\(?:\\\\.|[^"\\\\])|\\\\[^"\\\\])*\\\\"'
const quotedMember = new RegExp(`\\\\"${keys}\\\\"(\\s*:\\s*)(?:${quotedText}|${number})`, 'gi')

const shapes: readonly (readonly [RegExp, string])[] = [
  [/\bBearer\s+[A-Za-z0-9._~+/=-]{6,}/g, 'Bearer [redacted]'],
  [/\bsvc-code\.bearer\.[A-Za-z0-9._~+/=-]+/g, 'svc-code.bearer.[redacted]'],
  [/([#?&](?:token|access_token|key|api_key)=)[A-Za-z0-9._~+/=%-]+/g, '$1[redacted]'],
  [/\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[a-z])[-_][A-Za-z0-9_-]{8,}/g, '[redacted]'],
  [/\bAIza[A-Za-z0-9_-]{30,}/g, '[redacted]'],
  [/\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/g, '[redacted]']
]

/** Takes and gives one line of JSON with its line end. */
export function redactLine(line: string): string {
  if (line.length <= maxChars) return redact(line)
  const level = Number(/^\{"level":(\d+)/.exec(line)?.[1] ?? 50)
  const head = redact(line.slice(0, headChars))
  return `${JSON.stringify({ level, time: new Date().toISOString(), msg: `a log line of ${line.length} characters was cut`, head })}\n`
}

function redact(line: string): string {
  let result = line.replace(member, '"$1"$2"[redacted]"').replace(quotedMember, '\\"$1\\"$2\\"[redacted]\\"')
  for (const [shape, replacement] of shapes) result = result.replace(shape, replacement)
  return result
}
