/** The Edit tool: replaces text in a file. */
import type { Static } from '../../kernel/index.ts'
import { type Tool, ToolRefusal } from '../tools/index.ts'
import { editParameters } from './contract.ts'
import type { FileFacts } from './file-ops.ts'
import { isPlanned } from './files-seen.ts'
import { assertSame, assertWritable, locate, type Place, pathRule, refusal } from './places.ts'
import type { FilePorts } from './read.ts'
import { decodeText, encodeText, type TextFile } from './text-file.ts'

type Arguments = Static<typeof editParameters>

/** Larger files are not edited: the whole text is held in memory. */
const MAX_BYTES = 10 * 1024 * 1024

export function createEdit(ports: FilePorts): Tool<typeof editParameters> {
  const { ops, seen } = ports
  return {
    name: 'Edit',
    description:
      'Replaces old_string by new_string in a file. old_string must be exactly the text that Read shows (without line numbers) and occur ' +
      'once, unless replace_all is set. The file must have been read before.',
    parameters: editParameters,
    source: 'builtin',
    async prepare(args: Arguments, env) {
      if (args.old_string === args.new_string) throw new ToolRefusal('old_string and new_string are the same: there is nothing to change.')
      const place = await locate(args.path, env, ports)
      const files = await seen(env)
      const changed = async () => {
        try {
          const file = decoded(await ops.readAll(place.real), place)
          const { text, count } = edit(file, args, place)
          return { bytes: encodeText(text, file.style), count }
        } catch (error) {
          throw refusal(error, place.path)
        }
      }
      const check = async () => files.check(place.real, place.path, editable(await ops.stat(place.real), place))
      return {
        description: `Editing ${place.path}`,
        display: { kind: 'file_io', operation: 'edit', path: place.path, before: args.old_string, after: args.new_string },
        accesses: [{ kind: 'readwrite' as const, path: place.real }],
        ...pathRule(place, env.cwd),
        async check() {
          if (isPlanned(place.real, env)) return // what calls before this one make of the file is not known yet
          await check()
          await changed()
          await assertWritable(place, ops)
        },
        async run() {
          try {
            await assertSame(place, ops)
            await check()
            const { bytes, count } = await changed()
            await ops.replace(place.real, bytes)
            const written = await ops.stat(place.real)
            if (written) files.record(place.real, written.mtimeMs)
            return { output: `Replaced ${count} ${count === 1 ? 'occurrence' : 'occurrences'} in ${place.path}` }
          } catch (error) {
            throw refusal(error, place.path)
          }
        }
      }
    }
  }
}

function editable(facts: FileFacts | undefined, place: Place): FileFacts {
  if (!facts) throw new ToolRefusal(`The file ${place.path} does not exist.`)
  if (facts.kind !== 'file') throw new ToolRefusal(`${place.path} is not a regular file.`)
  if (facts.size > MAX_BYTES) throw new ToolRefusal(`The file ${place.path} is above 10 MiB; change it with a command instead.`)
  return facts
}

function decoded(bytes: Buffer, place: Place): TextFile {
  const file = decodeText(bytes)
  if (!file) throw new ToolRefusal(`${place.path} is not a text file in UTF-8, or in UTF-16 with a byte order mark.`)
  return file
}

/** The changed text. Files with CR LF throughout are edited as if they had LF, and keep their CR LF. */
function edit(
  { text: original, style: { endings } }: TextFile,
  args: Arguments,
  place: Place
): { readonly text: string; readonly count: number } {
  const crlf = endings === 'CR LF'
  const plain = (text: string) => (crlf ? text.replaceAll('\r\n', '\n') : text)
  const view = plain(original)
  let old = plain(args.old_string)
  let fresh = plain(args.new_string)
  if (!crlf && view.includes('\r') && !view.includes(old)) {
    // Read shows carriage returns of mixed files as \r
    old = old.replaceAll('\\r', '\r')
    fresh = fresh.replaceAll('\\r', '\r')
  }
  const parts = view.split(old)
  const count = parts.length - 1
  if (count === 0)
    throw new ToolRefusal(`old_string was not found in ${place.path}. It must be the text that Read shows, without the line numbers.`)
  if (count > 1 && !args.replace_all) {
    throw new ToolRefusal(`old_string occurs ${count} times in ${place.path}. Make it longer until it is unique, or set replace_all.`)
  }
  if (view.length + count * (fresh.length - old.length) > MAX_BYTES) {
    throw new ToolRefusal(`The file ${place.path} would be above 10 MiB; change it with a command instead.`)
  }
  const text = parts.join(fresh)
  return { text: crlf ? text.replaceAll('\n', '\r\n') : text, count }
}
