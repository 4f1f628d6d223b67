/** What a capability is like now: its steps, and the state that follows from them. */
import { firstAbort, headOf, redactText } from '../../kernel/index.ts'
import type { CapabilityStatus, CapabilityStep, InstallState } from './contract.ts'
import type { Capability, Detected } from './service.ts'

/** Looks at one step. Rejects with why it cannot be told. */
export interface Probe {
  readonly id: string
  readonly optional?: boolean
  look(signal: AbortSignal): Promise<Pick<CapabilityStep, 'state' | 'detail'>>
}

/** A failure for people: one line, without secrets. */
export function messageOf(error: unknown): string {
  const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
  return headOf(redactText(line), 500) || 'it failed without a word'
}

/** Looks at all steps side by side. One that fails or takes longer than `limit_ms` is `failed`. Rejects only when `signal` ended it. */
export async function steps(probes: readonly Probe[], limit_ms: number, signal: AbortSignal): Promise<CapabilityStep[]> {
  return await Promise.all(
    probes.map(async ({ id, optional, look }) => {
      const found = await inTime(look, limit_ms, signal).catch((error: unknown) => {
        signal.throwIfAborted()
        return { state: 'failed' as const, detail: messageOf(error) }
      })
      return { id, ...found, optional }
    })
  )
}

/** Rejects when `work` takes longer than `limit_ms`; its signal aborts then. */
export async function inTime<T>(work: (signal: AbortSignal) => Promise<T>, limit_ms: number, signal: AbortSignal): Promise<T> {
  const limit = new AbortController()
  const { signal: whole, end } = firstAbort(signal, limit.signal)
  const timer = setTimeout(() => limit.abort(new Error(`it took longer than ${limit_ms} ms`)), limit_ms)
  const aborted = new Promise<never>((_resolve, reject) => {
    whole.addEventListener('abort', () => reject(whole.reason), { once: true })
  })
  aborted.catch(() => undefined) // after the work is done nobody listens
  try {
    signal.throwIfAborted()
    return await Promise.race([work(whole), aborted])
  } finally {
    clearTimeout(timer)
    end()
  }
}

/** Ready when every required step is there; partial when any of them is. */
function stateOf(found: readonly CapabilityStep[]): 'ready' | 'partial' | 'not_installed' {
  const required = found.filter(step => step.optional !== true)
  if (required.every(step => step.state === 'ok')) return 'ready'
  return required.some(step => step.state === 'ok') ? 'partial' : 'not_installed'
}

/** Required steps that are not there. */
export function missingIn(found: readonly CapabilityStep[]): string[] {
  return found.filter(step => step.state !== 'ok' && step.optional !== true).map(step => step.id)
}

/** `install`: as it is here; why nothing can be installed is added where nothing else is said. */
export function shown(capability: Capability, found: Detected | undefined, install: InstallState): CapabilityStatus {
  const { id, pluginId, displayName, description, supported } = capability
  const state = found ? stateOf(found.steps) : 'unsupported'
  const why = supported && state !== 'ready' && install.error === undefined ? capability.unavailable() : undefined
  return {
    id,
    pluginId,
    displayName,
    description,
    supported,
    state,
    version: found?.version,
    steps: found ? [...found.steps] : [],
    install: { ...install, note: why ?? install.note }
  }
}

/** What the list shows of a capability that could not be looked at. */
export function undetected(capability: Capability, error: unknown, install: InstallState): CapabilityStatus {
  const step: CapabilityStep = { id: 'detect', state: 'failed', detail: messageOf(error) }
  return { ...shown(capability, { steps: [step] }, install), state: 'partial' }
}
