/** The Write tool: creates, replaces or extends a file. */
import type { Static } from '../../kernel/index.ts'
import { mayChange, type Tool, ToolRefusal } from '../tools/index.ts'
import { writeParameters } from './contract.ts'
import type { FileFacts, FileOps } from './file-ops.ts'
import { isPlanned } from './files-seen.ts'
import { assertSame, assertWritable, locate, type Place, pathRule, refusal } from './places.ts'
import type { FilePorts } from './read.ts'
import { decodeText, encodeText, inStyle, keptStyle, type TextStyle } from './text-file.ts'

type Arguments = Static<typeof writeParameters>

export function createWrite(ports: FilePorts): Tool<typeof writeParameters> {
  const { ops, seen } = ports
  return {
    name: 'Write',
    description:
      'Writes a text file, replacing it (mode overwrite, the default) or adding to its end (append). Missing directories are created. ' +
      'An existing file must have been read before; it keeps its encoding, byte order mark and line endings (write LF). To change a part of a ' +
      'file use Edit.',
    parameters: writeParameters,
    source: 'builtin',
    async prepare(args: Arguments, env) {
      const place = await locate(args.path, env, ports)
      const files = await seen(env)
      const append = args.mode === 'append'
      /** Whether a change of the file shows under other names, too. */
      const isShared = (facts: FileFacts | undefined) => append && (facts?.links ?? 1) > 1
      const shared = isShared(await ops.stat(place.real))
      /** Refuses anything but an absent or known regular file. */
      const check = (facts: FileFacts | undefined) => {
        if (facts && facts.kind !== 'file') throw new ToolRefusal(`${place.path} is not a regular file.`)
        files.check(place.real, place.path, facts)
      }
      return {
        description: `${append ? 'Appending to' : 'Writing'} ${place.path}`,
        display: { kind: 'file_io', operation: 'write', path: place.path, content: args.content, ...(append ? { detail: 'append' } : {}) },
        accesses: [{ kind: 'write' as const, path: place.real, shared }],
        ...pathRule(place, env.cwd),
        async check() {
          if (isPlanned(place.real, env) || mayChange(env.earlier, place.real)) return // what is there then is not known yet
          check(await ops.stat(place.real))
          await assertWritable(place, ops)
        },
        async run() {
          try {
            await assertSame(place, ops)
            const facts = await ops.stat(place.real)
            check(facts)
            if (!facts) await assertWritable(place, ops) // a file may stand where a directory is wanted
            if (isShared(facts) && !shared) throw new ToolRefusal(`${place.path} has another name by now. Make the call again.`)
            const style = await styleOf(place, ops)
            const text = inStyle(args.content, style)
            const bytes = encodeText(text, style, append && style.there)
            await (append ? ops.append(place.real, bytes) : ops.replace(place.real, bytes))
            const written = await ops.stat(place.real)
            if (written) files.record(place.real, written.mtimeMs)
            return { output: `${append ? 'Appended' : 'Wrote'} ${bytes.length} bytes to ${place.path}${keptStyle(style, text, append)}` }
          } catch (error) {
            throw refusal(error, place.path)
          }
        }
      }
    }
  }
}

/** Larger files are taken for plain text. */
const STYLE_BYTES = 10 * 1024 * 1024

/** How the file is written down by now; a new one, and what is no text, counts as UTF-8 with LF. */
async function styleOf(place: Place, ops: FileOps): Promise<TextStyle & { readonly there: boolean }> {
  const facts = await ops.stat(place.real)
  const known = facts && facts.size > 0 && facts.size <= STYLE_BYTES ? decodeText(await ops.readAll(place.real)) : undefined
  return { encoding: 'utf-8', bom: false, endings: 'none', ...known?.style, there: known !== undefined }
}
