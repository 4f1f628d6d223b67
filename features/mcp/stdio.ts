/** Talks to an MCP server over the standard streams of a program: one JSON message a line (MCP specification, Transports, stdio). */
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import { tailOf } from '../../kernel/index.ts'
import type { Program, Shell } from '../tools-shell/index.ts'

interface StdioOptions {
  readonly shell: Shell
  readonly program: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Longest message, UTF-16 units. */
  readonly messageChars: number
  /** Messages per second that are still heard. */
  readonly messagesPerSecond: number
  /** Between the end of its input, SIGTERM and SIGKILL, ms. */
  readonly graceMs: number
  readonly parse: (value: unknown) => JSONRPCMessage
}

/** Characters of its error output that are kept. */
const stderrChars = 4096

export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly #options: StdioOptions
  #program: Program | undefined
  #pieces: string[] = []
  #length = 0
  #stderr = ''
  #second = 0
  #heard = 0
  #closed = false
  /** Why it ended; undefined while it runs. */
  trouble: string | undefined

  constructor(options: StdioOptions) {
    this.#options = options
  }

  /** The end of what it wrote to its error output. */
  get stderr(): string {
    return this.#stderr
  }

  async start(): Promise<void> {
    const { shell, program, args, cwd, env } = this.#options
    this.#program = shell.start({
      program,
      args,
      cwd,
      env,
      onText: (kind, text) => {
        if (kind === 'stdout') this.#read(text)
        else this.#stderr = tailOf(this.#stderr + text, stderrChars)
      }
    })
    void this.#program.ended.then(why => {
      this.trouble ??= why
      this.#over()
    })
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#closed || !this.#program) throw new Error(this.trouble ?? 'the server is not running')
    await this.#program.write(`${JSON.stringify(message)}\n`)
  }

  async close(): Promise<void> {
    const program = this.#program
    this.#over()
    await program?.stop(this.#options.graceMs)
  }

  #over(): void {
    if (this.#closed) return
    this.#closed = true
    this.#pieces = []
    this.onclose?.()
  }

  #read(text: string): void {
    let rest = text
    for (let end = rest.indexOf('\n'); end >= 0 && !this.#closed; end = rest.indexOf('\n')) {
      const line = [...this.#pieces, rest.slice(0, end)].join('')
      this.#pieces = []
      this.#length = 0
      rest = rest.slice(end + 1)
      if (line.trim() !== '') this.#line(line)
    }
    if (this.#closed || rest === '') return
    this.#pieces.push(rest)
    this.#length += rest.length
    if (this.#length > this.#options.messageChars) this.#refuse(`it sent a message of more than ${this.#options.messageChars} characters`)
  }

  #line(line: string): void {
    const second = Math.floor(performance.now() / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#heard = 0
    }
    if (++this.#heard > this.#options.messagesPerSecond) {
      this.#refuse(`it sent more than ${this.#options.messagesPerSecond} messages in a second`)
      return
    }
    let message: JSONRPCMessage
    try {
      message = this.#options.parse(JSON.parse(line))
    } catch {
      this.onerror?.(new Error('it printed a line that is no message'))
      return
    }
    this.onmessage?.(message)
  }

  #refuse(why: string): void {
    this.trouble ??= why
    const program = this.#program
    this.onerror?.(new Error(why))
    this.#over()
    void program?.stop(0)
  }
}
