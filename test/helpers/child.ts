/** Runs a program of test/programs in a process of its own and talks to it by lines, so that a test can kill it at any moment. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'

const programs = process.env.SVC_CODE_TEST_PROGRAMS ?? fileURLToPath(new URL('../programs', import.meta.url))

/** The file to start: of a run, the one with all that the program imports (`run.mjs`). */
export function program(name: string): string {
  return join(programs, `${name}.js`)
}

export class Child {
  /** Lines printed so far. */
  readonly lines: string[] = []
  readonly #process: ChildProcess
  readonly #ended: Promise<unknown>
  #wake: () => void = () => undefined

  constructor(script: string, args: readonly string[]) {
    this.#process = spawn(process.execPath, [...process.execArgv, program(script), ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#ended = once(this.#process, 'close').then(() => this.#wake())
    createInterface({ input: this.#process.stdout! }).on('line', line => {
      this.lines.push(line)
      this.#wake()
    })
  }

  get pid(): number {
    return this.#process.pid!
  }

  /** Waits until so many lines were printed. */
  async atLeast(count: number): Promise<void> {
    while (this.lines.length < count) {
      if (this.#process.exitCode !== null || this.#process.signalCode !== null)
        throw new Error(`child ended after ${this.lines.length} lines`)
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
  }

  say(line: string): void {
    this.#process.stdin!.write(`${line}\n`)
  }

  /** Sends `kill -9` and waits until every line it printed has arrived. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#ended
  }

  /** Waits for its own end; answers the exit code. */
  async end(): Promise<number | null> {
    await this.#ended
    return this.#process.exitCode
  }
}

/** Starts a helper of this directory (without `.js`); it is killed after the test when it still runs. */
export function startChild(t: TestContext, script: string, ...args: string[]): Child {
  const child = new Child(script, args)
  t.after(() => child.kill())
  return child
}
