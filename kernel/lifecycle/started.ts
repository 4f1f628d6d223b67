/** Timers and child processes that a pack starts: they end with it, whatever becomes of them, and their faults are its own. */
import type { ChildProcess, SpawnOptions } from 'node:child_process'
import type { Guard } from './guard.ts'
import type { Scope } from './scope.ts'

interface Starter {
  readonly pack: string
  readonly guard: Guard
  readonly scope: Scope
}

export interface TimerOptions {
  /** Run once instead of again and again. Default false. */
  readonly once?: boolean
}

/** What setTimeout can count, ms. */
const longestMs = 2 ** 31 - 1

/** See `PackContext.timer`. */
export function startTimer(
  { pack, guard, scope }: Starter,
  ms: number,
  work: () => unknown,
  { once = false }: TimerOptions = {}
): () => void {
  if (!(ms >= 1 && ms <= longestMs)) throw new RangeError(`a timer takes 1 to ${longestMs} ms, not ${ms}`)
  let timer: NodeJS.Timeout
  let running: Promise<unknown> | undefined
  let over = false
  const drop = scope.ownUndo(() => {
    over = true
    clearTimeout(timer)
    return running
  })
  const run = async () => {
    await guard
      .run(pack, 'timer', async () => await work())
      .catch((error: unknown) => {
        if (!scope.signal.aborted) guard.report(pack, 'timer', error)
      })
    if (once) drop()
    else if (!over) arm()
  }
  const arm = () => {
    timer = setTimeout(() => {
      running = run()
    }, ms).unref()
  }
  arm()
  return drop
}

/** Children of all packs: a forced end of the server skips every clean-up, and none goes on without it. */
const children = new Set<ChildProcess>()

const killAll = () => {
  for (const child of children) signalGroup(child, 'SIGKILL')
}

/** See `PackContext.spawn`; SIGKILL comes `graceMs` after SIGTERM. */
export function startChild(
  { pack, guard, scope }: Starter,
  command: string,
  args: readonly string[],
  options: SpawnOptions,
  graceMs: number
): ChildProcess {
  // Loaded with the first child of a pack: a server whose packs have none goes without.
  const { spawn } = process.getBuiltinModule('node:child_process')
  const child = spawn(command, args, { ...options, detached: process.platform !== 'win32' })
  let timer: NodeJS.Timeout | undefined
  const ended = new Promise<void>(resolve => {
    child.once('exit', () => {
      clearTimeout(timer)
      signalGroup(child, 'SIGKILL')
      forget()
      resolve()
    })
    child.once('error', error => {
      if (child.listenerCount('error') === 0) guard.report(pack, `child process ${command}`, error)
      if (child.pid !== undefined) return
      forget()
      resolve()
    })
  })
  if (children.size === 0) process.on('exit', killAll)
  children.add(child)
  child.stdin?.on('error', () => undefined) // a program need not read what it is sent; its exit says how it went
  const forget = () => {
    children.delete(child)
    if (children.size === 0) process.off('exit', killAll)
    drop()
  }
  const drop = scope.ownUndo(() => {
    if (!children.has(child)) return undefined
    signalGroup(child, 'SIGTERM')
    timer = setTimeout(() => signalGroup(child, 'SIGKILL'), graceMs).unref()
    return ended
  })
  return child
}

function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, signal)
  } catch {
    // Nobody is left in the group.
  }
}
