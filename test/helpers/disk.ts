/** The file calls of Node, watched: what reached the disk in which order, with faults where a test wants them. */
import { writevSync } from 'node:fs'
import * as node from 'node:fs/promises'
import { basename } from 'node:path'
import { type FileCalls, nodeFiles } from '../../kernel/storage/files.ts'

type Call =
  | 'open'
  | 'write'
  | 'sync'
  | 'truncate'
  | 'chown'
  | 'close'
  | 'rename'
  | 'link'
  | 'unlink'
  | 'mkdir'
  | 'readFile'
  | 'readdir'
  | 'utimes'

const writes = new Set(['write', 'writev', 'writeFile', 'appendFile'])
const syncs = new Set(['sync', 'datasync'])
const others = new Set<string>(['truncate', 'chown', 'close'] satisfies Call[])

export class WatchedDisk {
  /** `<call> <name of the file>` in the order of their ends; reading, opening and closing are left out. */
  readonly done: string[] = []
  readonly #faults: { call: Call; fits: RegExp; code: string; times: number; partly: boolean }[] = []
  #short: { fits: RegExp; bytes: number } | undefined
  readonly #before: { call: Call; fits: RegExp; run(): Promise<void> }[] = []
  readonly files: FileCalls
  /** Where the handles that were given out write to. */
  readonly #names = new WeakMap<node.FileHandle, string>()

  constructor() {
    const call = <A extends readonly unknown[], T>(name: Call, run: (...args: A) => Promise<T>) => {
      return async (...args: A) => {
        const file = String(name === 'rename' || name === 'link' ? args[1] : args[0])
        await this.#meanwhile(name, file)
        this.#fail(name, file)
        const result = await run(...args)
        if (name !== 'open' && name !== 'readFile' && name !== 'readdir') this.done.push(`${name} ${basename(file)}`)
        return result
      }
    }
    const open = call('open', node.open)
    // The overloads of Node's functions do not survive the wrapping; the calls are passed on as they are.
    this.files = {
      ...node,
      open: async (...args: Parameters<typeof node.open>) => this.#watch(await open(...args), String(args[0])),
      rename: call('rename', node.rename),
      link: call('link', node.link),
      unlink: call('unlink', node.unlink),
      mkdir: call('mkdir', node.mkdir as never),
      readFile: call('readFile', node.readFile as never),
      readdir: call('readdir', node.readdir as never),
      utimes: call('utimes', node.utimes),
      flushNames: call('sync', nodeFiles.flushNames),
      writeNow: (handle: node.FileHandle, lines: readonly Uint8Array[]) => this.#writeNow(handle, lines)
    } as unknown as FileCalls
  }

  /** The next `times` calls on files that fit fail. `partly`: a write of several lines takes the first one before. */
  fail(call: Call, fits: RegExp, code = 'EIO', times = 1, partly = false): void {
    this.#faults.push({ call, fits, code, times, partly })
  }

  /** The next write of several lines to a file that fits takes only so many bytes, and says so. */
  takeOnly(bytes: number, fits: RegExp): void {
    this.#short = { fits, bytes }
  }

  /** Runs something before the next call on a file that fits. */
  before(call: Call, fits: RegExp, run: () => Promise<void>): void {
    this.#before.push({ call, fits, run })
  }

  async #meanwhile(call: Call, file: string): Promise<void> {
    const at = this.#before.findIndex(one => one.call === call && one.fits.test(file))
    if (at >= 0) await this.#before.splice(at, 1)[0]?.run()
  }

  #fault(call: Call, file: string) {
    const fault = this.#faults.find(one => one.call === call && one.times > 0 && one.fits.test(file))
    if (fault) fault.times--
    return fault
  }

  #fail(call: Call, file: string): void {
    const fault = this.#fault(call, file)
    if (fault) throw faultOf(fault.code, call)
  }

  #shortened(file: string): number | undefined {
    if (!this.#short?.fits.test(file)) return undefined
    const { bytes } = this.#short
    this.#short = undefined
    return bytes
  }

  /** What is to happen before a write takes its time. */
  #writeNow(handle: node.FileHandle, lines: readonly Uint8Array[]): number | undefined {
    const file = this.#names.get(handle) ?? ''
    if (this.#before.some(one => one.call === 'write' && one.fits.test(file))) return undefined
    const fault = this.#fault('write', file)
    if (fault?.partly) writevSync(handle.fd, lines.slice(0, 1))
    if (fault) throw faultOf(fault.code, 'write')
    const short = this.#shortened(file)
    const taken = writevSync(handle.fd, short === undefined ? lines : [Buffer.concat(lines).subarray(0, short)])
    this.done.push(`write ${basename(file)}`)
    return taken
  }

  #watch(handle: node.FileHandle, file: string): node.FileHandle {
    const watched = this.#watched(handle, file)
    this.#names.set(watched, file)
    return watched
  }

  #watched(handle: node.FileHandle, file: string): node.FileHandle {
    return new Proxy(handle, {
      get: (target, key: string) => {
        const value: unknown = Reflect.get(target, key)
        if (typeof value !== 'function') return value
        const kind = writes.has(key) ? 'write' : syncs.has(key) ? 'sync' : others.has(key) ? (key as Call) : undefined // it is one of them
        if (!kind) return value.bind(target)
        return async (...args: unknown[]) => {
          await this.#meanwhile(kind, file)
          const fault = this.#fault(kind, file)
          if (fault?.partly) await target.writev((args[0] as Uint8Array[]).slice(0, 1))
          // The system lets go of a descriptor also where closing it fails.
          if (fault && kind === 'close') await target.close()
          if (fault) throw faultOf(fault.code, kind)
          const short = kind === 'write' ? this.#shortened(file) : undefined
          if (short !== undefined) return target.write(Buffer.concat(args[0] as Uint8Array[]).subarray(0, short))
          const result: unknown = await value.apply(target, args)
          if (kind !== 'close') this.done.push(`${kind} ${basename(file)}`)
          return result
        }
      }
    })
  }
}

function faultOf(code: string, syscall: string): Error {
  return Object.assign(new Error(`${code}: a fault of the test`), { code, syscall, errno: -1 })
}
