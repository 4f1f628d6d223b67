/** The Write tool: creates, replaces or extends a file. */
import type { Static } from '../../kernel/index.ts'
import { type Tool, ToolRefusal } from '../tools/index.ts'
import { writeParameters } from './contract.ts'
import { assertSame, locate, pathRule, refusal } from './places.ts'
import type { FilePorts } from './read.ts'

type Arguments = Static<typeof writeParameters>

export function createWrite(ports: FilePorts): Tool<typeof writeParameters> {
  const { ops, seen } = ports
  return {
    name: 'Write',
    description:
      'Writes a text file, replacing it (mode overwrite, the default) or adding to its end (append). Missing directories are created. ' +
      'An existing file must have been read before. To change a part of a file use Edit.',
    parameters: writeParameters,
    source: 'builtin',
    async prepare(args: Arguments, env) {
      const place = await locate(args.path, env, ports)
      const files = await seen(env)
      const append = args.mode === 'append'
      /** Refuses anything but an absent or known regular file. Whether a change of it shows under other names, too. */
      const check = async (turn?: number): Promise<boolean> => {
        const facts = await ops.stat(place.real)
        if (facts && facts.kind !== 'file') throw new ToolRefusal(`${place.path} is not a regular file.`)
        files.check(place.real, place.path, facts, turn)
        return append && (facts?.links ?? 1) > 1
      }
      const shared = await check(env.turn_id)
      return {
        description: `${append ? 'Appending to' : 'Writing'} ${place.path}`,
        display: { kind: 'file_io', operation: 'write', path: place.path, content: args.content, ...(append ? { detail: 'append' } : {}) },
        accesses: [{ kind: 'write' as const, path: place.real, shared }],
        ...pathRule(place, env.cwd),
        async run() {
          try {
            await assertSame(place, ops)
            if ((await check()) && !shared) throw new ToolRefusal(`${place.path} has another name by now. Make the call again.`)
            await (append ? ops.append(place.real, args.content) : ops.replace(place.real, args.content))
            const written = await ops.stat(place.real)
            if (written) files.record(place.real, written.mtimeMs)
          } catch (error) {
            throw refusal(error, place.path)
          }
          return { output: `${append ? 'Appended' : 'Wrote'} ${Buffer.byteLength(args.content)} bytes to ${place.path}` }
        }
      }
    }
  }
}
