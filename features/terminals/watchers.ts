/** Who watches a terminal. Each gets its output at its own pace: one that is slow holds up no other, and goes on with what is kept. */
import type { Connection } from '../../kernel/index.ts'
import { exit, output, type TerminalObject } from './contract.ts'
import type { OutputFrame, Scrollback } from './scrollback.ts'

interface Watcher {
  /** Of the newest frame that it was sent. */
  seq: number
  /** It has not taken what it was sent, and gets no more until then. */
  behind: boolean
  readonly release: () => unknown
}

interface End {
  readonly at: string
  readonly code: number | null
}

export class Watchers {
  readonly #ids: { readonly session_id: string; readonly terminal_id: string }
  readonly #scrollback: Scrollback
  readonly #hold: (held: boolean) => void
  readonly #all = new Map<Connection, Watcher>()
  #end: End | undefined
  #held = false

  /** `hold`: nobody of those who watch can take more now, or somebody can again. */
  constructor({ id, session_id }: Pick<TerminalObject, 'id' | 'session_id'>, scrollback: Scrollback, hold: (held: boolean) => void) {
    this.#ids = { session_id, terminal_id: id }
    this.#scrollback = scrollback
    this.#hold = hold
  }

  /** Sends what is kept behind `since`, then everything that comes; how many frames were sent. The connection does not watch yet. */
  attach(connection: Connection, since: number): number {
    const frames = this.#scrollback.since(since)
    for (const frame of frames) this.#send(connection, frame)
    if (this.#end) {
      this.#sendExit(connection, this.#end)
      return frames.length + 1
    }
    const release = connection.own(() => this.#forget(connection))
    this.#all.set(connection, { seq: this.#scrollback.seq, behind: false, release })
    this.#look()
    return frames.length
  }

  detach(connection: Connection): void {
    void this.#all.get(connection)?.release()
  }

  print(frame: OutputFrame): void {
    for (const [connection, watcher] of this.#all) {
      if (watcher.behind) continue
      this.#send(connection, frame)
      watcher.seq = frame.seq
    }
    this.#look()
  }

  /** Nothing more is printed. Who is behind hears of it in its turn. */
  end(end: End): void {
    this.#end = end
    for (const [connection, watcher] of this.#all) if (!watcher.behind) this.#finish(connection, end)
  }

  /** What the system takes at once was not too much: that is known after this pass of the loop. */
  #look(): void {
    if (this.#all.size === 0) return
    setImmediate(() => {
      for (const [connection, watcher] of this.#all) if (!watcher.behind) this.#goOn(connection, watcher)
      this.#tell()
    })
  }

  /** Sends what came meanwhile, as far as it is kept and as long as it is taken; then it gets what comes at once again. */
  #goOn(connection: Connection, watcher: Watcher): void {
    if (this.#all.get(connection) !== watcher) return
    if (!connection.open) {
      this.detach(connection)
      return
    }
    for (const frame of this.#scrollback.since(watcher.seq)) {
      if (!connection.writable) break
      this.#send(connection, frame)
      watcher.seq = frame.seq
    }
    watcher.behind = !connection.writable
    if (watcher.behind) void connection.drained().then(() => this.#goOn(connection, watcher))
    else if (this.#end) this.#finish(connection, this.#end)
    this.#tell()
  }

  #finish(connection: Connection, end: End): void {
    this.#sendExit(connection, end)
    this.detach(connection)
  }

  #forget(connection: Connection): void {
    this.#all.delete(connection)
    this.#tell()
  }

  #tell(): void {
    const held = this.#all.size > 0 && [...this.#all.values()].every(({ behind }) => behind)
    if (held === this.#held) return
    this.#held = held
    this.#hold(held)
  }

  #send(connection: Connection, { seq, data, at }: OutputFrame): void {
    connection.send({ type: output.type, seq, ...this.#ids, timestamp: at, payload: { data } })
  }

  #sendExit(connection: Connection, { at, code }: End): void {
    connection.send({ type: exit.type, ...this.#ids, timestamp: at, payload: { exit_code: code } })
  }
}
