/** The Read tool: a window of a text file with line numbers. */
import { TextDecoder } from 'node:util'
import { headOf, type Static } from '../../kernel/index.ts'
import { mayChange, type Tool, type ToolEnv, ToolRefusal, type ToolResult } from '../tools/index.ts'
import { readParameters } from './contract.ts'
import { type FileKind, fileKind } from './file-kind.ts'
import type { FileOps } from './file-ops.ts'
import type { FilesSeen } from './files-seen.ts'
import { LINE_CHARS, type Line, LineWindow, WINDOW_LINES } from './line-window.ts'
import { assertSame, locate, type Place, type PlacePorts, pathRule, refusal } from './places.ts'

type Arguments = Static<typeof readParameters>

export interface FilePorts extends PlacePorts {
  readonly seen: (env: ToolEnv) => Promise<FilesSeen>
}

/** Bytes of numbered lines in one answer. */
const MAX_BYTES = 100 * 1024
/** UTF-16 files above this size are not read. */
const UTF16_BYTES = 10 * 1024 * 1024

export function createRead(ports: FilePorts): Tool<typeof readParameters> {
  const { ops, seen } = ports
  return {
    name: 'Read',
    description:
      'Reads a text file and returns numbered lines (number, tab, text). At most 1000 lines or 100 KiB per call: page with line_offset ' +
      'and n_lines; a negative line_offset counts from the end. Lines above 2000 characters are cut.',
    parameters: readParameters,
    source: 'builtin',
    async prepare(args: Arguments, env) {
      const place = await locate(args.path, env, ports)
      const files = await seen(env)
      const attempt = async (signal: AbortSignal) => {
        try {
          return await read(args, place, ops, signal)
        } catch (error) {
          throw refusal(error, place.path)
        }
      }
      return {
        description: `Reading ${place.path}`,
        display: { kind: 'file_io', operation: 'read', path: place.path },
        accesses: [{ kind: 'read' as const, path: place.real }],
        ...pathRule(place, env.cwd),
        async check(signal) {
          // What calls before this one make of the file is not known yet.
          if (!mayChange(env.earlier, place.real)) await attempt(signal)
        },
        async run(_progress, signal) {
          await assertSame(place, ops)
          const { result, mtimeMs } = await attempt(signal)
          files.record(place.real, mtimeMs)
          return result
        }
      }
    }
  }
}

/** The answer, and the modification time of the file that it shows. */
interface Reading {
  readonly result: ToolResult
  readonly mtimeMs: number
}

async function read(args: Arguments, place: Place, ops: FileOps, signal: AbortSignal): Promise<Reading> {
  const facts = await ops.stat(place.real)
  if (!facts) throw new ToolRefusal(`The file ${place.path} does not exist.`)
  if (facts.kind !== 'file') throw new ToolRefusal(`${place.path} is not a regular file.`)
  const window = new LineWindow(args.line_offset ?? 1, args.n_lines ?? WINDOW_LINES)
  const kind = await scan(place, facts.size, window, ops, signal)
  const lines = window.end()
  const { mtimeMs } = facts
  if (window.total === 0) return { result: { output: '(the file is empty)' }, mtimeMs }
  if (lines.length === 0) throw new ToolRefusal(`The file ${place.path} has only ${window.total} lines.`)
  return { result: show(lines, window, kind), mtimeMs }
}

/** Decodes the file into the window; refuses what is not text. */
async function scan(place: Place, size: number, window: LineWindow, ops: FileOps, signal: AbortSignal): Promise<FileKind> {
  let decoder: TextDecoder | undefined
  let kind: FileKind = 'text'
  for await (const chunk of ops.read(place.real, signal)) {
    if (!decoder) {
      kind = fileKind(chunk)
      if (kind === 'image' || kind === 'video')
        throw new ToolRefusal(
          `${place.path} is ${kind === 'image' ? 'an image' : 'a video'}, not a text file. Models that can see it have ReadMediaFile for it.`
        )
      if (kind === 'binary') throw new ToolRefusal(`${place.path} is a binary file.`)
      if (kind !== 'text' && size > UTF16_BYTES)
        throw new ToolRefusal(`${place.path} is a UTF-16 file above 10 MiB; convert it to UTF-8 first.`)
      decoder = new TextDecoder(kind === 'text' ? 'utf-8' : kind, { fatal: true })
    }
    feed(decode(decoder, place, chunk), place, window)
  }
  if (decoder) feed(decode(decoder, place), place, window)
  return kind
}

function decode(decoder: TextDecoder, place: Place, chunk?: Uint8Array): string {
  try {
    return chunk ? decoder.decode(chunk, { stream: true }) : decoder.decode()
  } catch {
    throw new ToolRefusal(`${place.path} is not a ${decoder.encoding.toUpperCase()} text file. A command such as iconv can convert it.`)
  }
}

function feed(text: string, place: Place, window: LineWindow): void {
  if (text.includes('\0')) throw new ToolRefusal(`${place.path} contains NUL bytes; it is a binary file.`)
  window.push(text)
}

function show(lines: readonly Line[], window: LineWindow, kind: FileKind): ToolResult {
  const shown: string[] = []
  const cut: number[] = []
  let bytes = 0
  for (const line of lines) {
    const text = window.mixed ? line.text.replaceAll('\r', '\\r') + (line.cr && !line.cut ? '\\r' : '') : line.text
    const row = `${line.number}\t${line.cut ? `${headOf(text, LINE_CHARS - 3)}...` : text}`
    bytes += Buffer.byteLength(row) + 1
    if (bytes > MAX_BYTES && shown.length > 0) break
    shown.push(row)
    if (line.cut) cut.push(line.number)
  }
  const first = lines[0]!.number
  const last = first + shown.length - 1
  const notes = [`Lines ${first}-${last} of ${window.total}.`]
  if (shown.length < lines.length) notes.push('Stopped at 100 KiB; go on with line_offset.')
  else if (lines.length === WINDOW_LINES && last < window.total) notes.push('Stopped at 1000 lines; go on with line_offset.')
  if (cut.length > 0) notes.push(`Lines cut at ${LINE_CHARS} characters: ${cut.slice(0, 20).join(', ')}${cut.length > 20 ? ', ...' : ''}.`)
  if (window.mixed) notes.push('Line endings are mixed; carriage returns are shown as \\r.')
  else if (window.crlf) notes.push('Line endings are CR LF, shown as LF.')
  if (kind !== 'text') notes.push(`The file is encoded as ${kind.toUpperCase()}.`)
  return { output: shown.join('\n'), note: notes.join(' '), truncated: true }
}
