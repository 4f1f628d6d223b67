/** What every part of one kernel shares: built once, handed down whole. */
import { join } from 'node:path'
import { Guard } from './lifecycle/guard.ts'
import { Hosts } from './lifecycle/slot.ts'
import { createLog, type Logger } from './log/log.ts'
import { type FilledOptions, type KernelOptions, withDefaults } from './options.ts'

export interface Environment {
  /** Options with their defaults; `home` is absolute. */
  readonly options: FilledOptions
  readonly log: Logger
  readonly guard: Guard
  /** Sessions, agents and connections, by the slots they hold values of. */
  readonly hosts: Hosts
  now(): Date
  /** Monotonic ULID. */
  newId(): string
}

/** The environment of one kernel; `home` must be absolute. */
export function createEnvironment(given: KernelOptions): Environment {
  const options = withDefaults(given)
  const log = createLog(options.log, join(options.home, 'logs', `${options.product}.log`))
  const guard = new Guard(log)
  const hosts = new Hosts(guard, options.setupTimeoutMs)
  return { options, log, guard, hosts, now: options.now, newId: options.newId }
}
