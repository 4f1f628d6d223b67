/** Runs calls side by side where they cannot disturb each other, in order where they could. */
import type { EarlierCall, ToolAccess } from './tool.ts'

export interface Job {
  readonly accesses: readonly ToolAccess[]
  /** Never rejects. */
  run(): Promise<void>
}

/** Starts each job as soon as it conflicts with no running and no earlier waiting job; resolves when all have ended. No numeric cap. */
export async function schedule(jobs: readonly Job[]): Promise<void> {
  const waiting = [...jobs]
  const running = new Set<Job>()
  await new Promise<void>(resolve => {
    const pump = () => {
      const passed: Job[] = []
      for (const job of [...waiting]) {
        const free = [...running, ...passed].every(other => !conflict(job.accesses, other.accesses))
        if (!free) {
          passed.push(job)
          continue
        }
        waiting.splice(waiting.indexOf(job), 1)
        running.add(job)
        void job.run().finally(() => {
          running.delete(job)
          pump()
        })
      }
      if (waiting.length === 0 && running.size === 0) resolve()
    }
    pump()
  })
}

/** Whether two calls must not run at the same time. A call without accesses conflicts with nothing. */
export function conflict(a: readonly ToolAccess[], b: readonly ToolAccess[]): boolean {
  if (a.length === 0 || b.length === 0) return false
  return a.some(one => b.some(other => collide(one, other)))
}

/** Whether a call may change what another one sees. */
export function mayAlter(change: readonly ToolAccess[], look: readonly ToolAccess[]): boolean {
  return conflict(
    change.filter(({ kind }) => writes(kind) || kind === 'change' || kind === 'exclusive'),
    look
  )
}

/** Whether calls before may change what is at a path (absolute, links resolved), or what is there when it is looked at. */
export function mayChange(earlier: readonly EarlierCall[], path: string, recursive = false): boolean {
  return earlier.some(({ accesses }) => conflict(accesses, [{ kind: 'read', path, recursive }]))
}

function collide(a: ToolAccess, b: ToolAccess): boolean {
  if (a.kind === 'exclusive' || b.kind === 'exclusive') return true
  if ('thing' in a || 'thing' in b)
    return 'thing' in a && 'thing' in b && a.thing === b.thing && (a.kind === 'change' || b.kind === 'change')
  if (!writes(a.kind) && !writes(b.kind)) return false
  const left = fold(a.path)
  const right = fold(b.path)
  return (
    left === right || (a.recursive === true && right.startsWith(below(left))) || (b.recursive === true && left.startsWith(below(right)))
  )
}

const writes = (kind: string) => kind === 'write' || kind === 'readwrite'
const fold = (path: string) =>
  path
    .replaceAll('\\', '/')
    .replace(/\/+/g, '/')
    .replace(/(?<=.)\/$/, '')
    .toLowerCase()
const below = (path: string) => (path.endsWith('/') ? path : `${path}/`)
