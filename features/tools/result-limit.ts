/** Last step of a result: never empty, never longer than the model should read; the whole text is kept on disk. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { headOf, type Logger } from '../../kernel/index.ts'
import type { LlmContent, LlmToolCall } from '../llm/index.ts'
import type { ToolResult } from './tool.ts'

/** Text in place of an empty result. */
const EMPTY = '(the tool finished; its output is empty)'
/** Leading text of a result that holds media only. */
const MEDIA_ONLY = '(the output follows as media)'
/** Characters of text that go to the model as they are. */
const RESULT_CHARS = 50_000
const PREVIEW_CHARS = 2_000

interface LimitPorts {
  /** Directory of the agent; long texts go to `tool-results/` below it. */
  readonly dir: string
  readonly newId: () => string
  readonly log: Logger
}

/** Fills in empty results and replaces texts above 50000 characters by a header, a path and their first 2000 characters. Never rejects. */
export async function limitResult(result: ToolResult, call: LlmToolCall, ports: LimitPorts): Promise<ToolResult> {
  const { output } = result
  if (typeof output === 'string') {
    if (output.trim() === '') return { ...result, output: EMPTY }
    if (result.truncated || output.length <= RESULT_CHARS) return result
    return { ...result, output: await shorten(output, call, ports), truncated: true }
  }
  const texts = output.filter(part => part.type === 'text')
  const media = output.filter(part => part.type !== 'text')
  const text = texts.map(part => part.text).join('\n')
  if (media.length === 0 && text.trim() === '') return { ...result, output: EMPTY }
  if (texts.length === 0) return { ...result, output: [{ type: 'text', text: MEDIA_ONLY }, ...media] }
  if (result.truncated || text.length <= RESULT_CHARS) return result
  const short: LlmContent = { type: 'text', text: await shorten(text, call, ports) }
  return { ...result, output: [short, ...media], truncated: true }
}

async function shorten(text: string, call: LlmToolCall, ports: LimitPorts): Promise<string> {
  const header = [`The output of ${call.name} (call ${call.id}) is too long to show: ${text.length} characters, ${lineCount(text)} lines.`]
  try {
    const dir = join(ports.dir, 'tool-results')
    await mkdir(dir, { recursive: true, mode: 0o700 })
    const path = join(dir, `${ports.newId()}-${call.name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64)}.txt`)
    await writeFile(path, text, { mode: 0o600 })
    header.push(`The text was saved to ${path}`, 'Page through it with Read (line_offset, n_lines) or search it with Grep.')
  } catch (error) {
    ports.log.error({ err: error }, 'a long tool result could not be saved')
    header.push('The rest could not be saved. Narrow the call down to get a shorter output.')
  }
  header.push(`First ${PREVIEW_CHARS} characters:`, '', headOf(text, PREVIEW_CHARS))
  return header.join('\n')
}

function lineCount(text: string): number {
  let count = 1
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++
  return count
}
