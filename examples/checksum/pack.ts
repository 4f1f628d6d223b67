/**
 * Checksum: a third-party tool. Asks before it reads outside of the project, tells how far it is, and stops when it is told to.
 *
 * Tool: Checksum. Option: `chunk_kib`.
 */

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Tool, ToolRefusal, Tools } from '../../features/tools/index.ts'
import { definePack, type Static, Type } from '../../kernel/index.ts'

const parameters = Type.Object({
  path: Type.String({ minLength: 1, description: 'File, absolute or from the working directory' }),
  algorithm: Type.Optional(Type.Union([Type.Literal('sha256'), Type.Literal('sha512')], { description: 'Default sha256' }))
})

const checksum = (chunkBytes: number): Tool<typeof parameters> => ({
  name: 'Checksum',
  description: 'Computes the checksum of a file.',
  parameters,
  source: 'builtin',
  // Says what the call will do. Whoever decides about it (rules, the user) sees this; nothing has happened yet.
  prepare({ path, algorithm = 'sha256' }: Static<typeof parameters>, { cwd }) {
    const file = resolve(cwd, path)
    return {
      description: `Checksum of ${file}`,
      display: { kind: 'file_io', operation: 'read', path: file },
      accesses: [{ kind: 'read', path: file }],
      approval_argument: file,
      // Before somebody is asked: nobody shall approve what fails anyway.
      async check() {
        const found = await stat(file).catch(() => undefined)
        if (!found?.isFile()) throw new ToolRefusal(`There is no file ${file}.`)
      },
      async run(progress, signal) {
        const { size } = await stat(file)
        const hash = createHash(algorithm)
        let done = 0
        // The signal ends the stream: the user aborts, the time is up, or this pack is unloaded.
        for await (const chunk of createReadStream(file, { signal, highWaterMark: chunkBytes })) {
          hash.update(chunk)
          done += chunk.length
          progress({ kind: 'progress', text: `${done} of ${size} bytes`, percent: Math.floor((done / size) * 100) })
        }
        return { output: `${algorithm} ${hash.digest('hex')}` }
      }
    }
  }
})

export default definePack({
  name: 'checksum',
  description: 'A tool that computes the checksum of a file',
  config: Type.Object({
    chunk_kib: Type.Integer({ minimum: 1, maximum: 16_384, default: 1024, description: 'How much is read between two reports, KiB' })
  }),
  setup(ctx) {
    ctx.contribute(Tools, checksum(ctx.config.chunk_kib * 1024))
  }
})
