/** What the demo model says next: understands a few requests and answers from the tool results it got. */
import type { LlmMessage } from '../../features/llm/index.ts'

export interface Move {
  readonly text: string
  readonly tool?: { readonly id: string; readonly name: string; readonly args: Readonly<Record<string, unknown>> }
}

interface Wish {
  readonly say: string
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
}

/** One move: call the tool of the next unfulfilled wish, or sum up. */
export function nextMove(messages: readonly LlmMessage[]): Move {
  const at = messages.findLastIndex(message => message.role === 'user' && !isReminder(textOf(message.content)))
  const asked = messages[at]
  const wishes = asked ? wishesOf(textOf(asked.content)) : []
  const results = messages.slice(at + 1).filter(message => message.role === 'tool')
  if (wishes.length === 0)
    return {
      text: 'I am the demo model. Ask me to "list the files", "read <file>", "run <command>" or "call <Tool> {...}"; join wishes with "then".'
    }
  const wish = wishes[results.length]
  const last = results.at(-1)
  const said = last ? `${report(wishes[results.length - 1], last)} ` : ''
  if (!wish) return { text: `${said}That is all you asked for.` }
  return { text: `${said}${wish.say}`, tool: { id: `demo_${messages.length}_${results.length}`, name: wish.name, args: wish.args } }
}

function isReminder(text: string): boolean {
  return text.startsWith('<system-reminder>')
}

function textOf(content: LlmMessage['content']): string {
  return content
    .map(part => (part.type === 'text' ? part.text : ''))
    .join('\n')
    .trim()
}

function wishesOf(text: string): Wish[] {
  return text.split(/[,;.]?\s+(?:and\s+)?then\s+|\n+/i).flatMap((part): Wish[] => {
    const wish = part.trim().replace(/^please\s+/i, '')
    const file = /^(?:read|show|open)\s+(?:me\s+)?(?:the\s+file\s+)?[`"']?([^`"']+?)[`"']?[.!]?$/i.exec(wish)?.[1]
    const command = /^(?:run|execute)\s+[`"']?(.+?)[`"']?$/i.exec(wish)?.[1]
    const [, tool, json] = /^call\s+([A-Za-z]\w*)(?:\s+(?:with\s+)?(\{.*\}))?\.?$/i.exec(wish) ?? []
    if (tool) return [{ say: `I call ${tool}.`, name: tool, args: argumentsOf(json) }]
    if (/^(?:list|show)\b.*\bfiles\b/i.test(wish)) return [{ say: 'I look for the files.', name: 'Glob', args: { pattern: '**/*' } }]
    if (command) return [{ say: `I run ${command}.`, name: 'Bash', args: { command } }]
    if (file) return [{ say: `I read ${file}.`, name: 'Read', args: { path: file } }]
    return []
  })
}

/** What is no JSON is none: the tool says what it needs. */
function argumentsOf(json = '{}'): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(json) as Readonly<Record<string, unknown>>
  } catch {
    return {}
  }
}

function report(wish: Wish | undefined, result: Extract<LlmMessage, { role: 'tool' }>): string {
  const lines = textOf(result.content)
    .split('\n')
    .filter(line => line.trim() !== '')
  if (result.is_error) return `That did not work: ${(lines.at(-1) ?? 'no reason was given').replace(/\.$/, '')}.`
  if (wish?.name === 'Glob' && lines[0]?.startsWith('No files')) return 'There are no files.'
  if (wish?.name === 'Glob') return found(lines)
  if (wish?.name === 'Read') return counted(lines.filter(line => /^\s*\d+\t/.test(line)).length)
  if (wish && wish.name !== 'Bash') return `${wish.name} answered: ${lines.join(' ')}.`.replace(/\.\.$/, '.')
  return `The command printed ${lines.length} ${lines.length === 1 ? 'line' : 'lines'}.`
}

/** The first ten; a last line in brackets says how many there are besides. */
function found(lines: readonly string[]): string {
  const files = lines.filter(line => !line.startsWith('('))
  const more = files.length > 10 || files.length < lines.length ? ', ...' : ''
  return `I found ${files.length} ${files.length === 1 ? 'file' : 'files'}: ${files.slice(0, 10).join(', ')}${more}.`
}

/** Read shows numbered lines; what follows them are its own notes. */
function counted(lines: number): string {
  return `The file has ${lines} ${lines === 1 ? 'line' : 'lines'} with text.`
}
