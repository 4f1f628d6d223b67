/** Writes down everything that a server says and keeps, and names the seeded secrets in it. */
import { readdir, readFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { type Envelope, RestClient, SocketClient } from '../../kernel/testing.ts'
import { type Ended, type Running, runWith, serveWith } from './cli.ts'
import type { Leak, Secrets } from './secrets.ts'

interface Said {
  readonly where: string
  readonly text: string
  readonly allowed: readonly string[]
}

/** Files of a home that hold secrets by their purpose. */
const keepsSecrets = (file: string) => file === 'config.toml' || file === 'server.token' || file.startsWith('credentials/')

export class Witness {
  readonly home: string
  readonly secrets: Secrets
  readonly #said: Said[] = []

  constructor(home: string, secrets: Secrets) {
    this.home = home
    this.secrets = secrets
  }

  saw(where: string, text: string, allowed: readonly string[] = []): void {
    this.#said.push({ where, text, allowed })
  }

  /** Secrets in what was said and in the files of the home, names of files included. */
  async leaks(): Promise<Leak[]> {
    const found = this.#said.flatMap(({ where, text, allowed }) => this.secrets.find(where, text, allowed))
    for (const entry of await readdir(this.home, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name)
      const name = relative(this.home, path).split(sep).join('/')
      found.push(...this.secrets.find(`name of ${name}`, name))
      if (entry.isFile() && !keepsSecrets(name)) found.push(...this.secrets.find(name, await readFile(path, 'latin1')))
    }
    return found
  }
}

export interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** Seeds that this answer may carry. */
  readonly allowed?: readonly string[]
  /** Sent instead of the JSON of a body. */
  readonly raw?: string
}

/** A server process whose answers, frames and output go to the witness. */
export class WatchedServer {
  readonly running: Running
  readonly witness: Witness
  readonly #rest: RestClient
  readonly #sockets: SocketClient[] = []

  private constructor(running: Running, witness: Witness) {
    this.running = running
    this.witness = witness
    this.#rest = new RestClient(running.url, running.token)
  }

  /** At log level trace. The token becomes a seed, `server.token`. */
  static async start(
    t: { after(fn: () => unknown): void },
    witness: Witness,
    env: NodeJS.ProcessEnv = {},
    ...args: string[]
  ): Promise<WatchedServer> {
    const all = { SVC_CODE_HOME: witness.home, ...env }
    const running = await serveWith(t, all, '--port', '0', '--log-level', 'trace', ...args)
    const server = new WatchedServer(running, witness)
    t.after(() => server.#rest.close())
    witness.secrets.add('server.token', running.token)
    return server
  }

  async call(method: string, path: string, body?: unknown, { headers = {}, allowed = [], raw }: CallOptions = {}): Promise<Envelope> {
    const text = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const answer = await this.#rest.raw(method, path, {
      headers: { ...(text !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(text !== undefined && { body: text })
    })
    const said = answer.body.toString('utf8')
    this.witness.saw(`${method} ${path} -> ${answer.status}`, `${JSON.stringify(answer.headers)}\n${said}`, allowed)
    const json = answer.headers['content-type']?.includes('json') ? (JSON.parse(said) as Envelope) : ({ code: 0 } as Envelope)
    return { ...json, status: answer.status }
  }

  /** A socket; its frames are looked at when the server stops. */
  async socket(): Promise<SocketClient> {
    const socket = await SocketClient.open(this.running.url, this.running.token)
    this.#sockets.push(socket)
    return socket
  }

  /** Stops in good order and hands the frames and the output to the witness; only the banner may show the token. */
  async stop(): Promise<Ended> {
    const { running, witness } = this
    running.child.kill('SIGTERM')
    const ended = await running.ended
    for (const [n, socket] of this.#sockets.entries()) {
      for (const frame of socket.frames) witness.saw(`frame ${frame.type} of socket ${n}`, JSON.stringify(frame))
    }
    witness.saw('stdout of serve', ended.stdout, ['server.token'])
    witness.saw('stderr of serve', ended.stderr)
    return ended
  }
}

/** Runs a command on the witness's home; what it prints goes to the witness. */
export async function watchedRun(witness: Witness, env: NodeJS.ProcessEnv, args: readonly string[], allowed: readonly string[] = []) {
  const ended = await runWith({ SVC_CODE_HOME: witness.home, ...env }, ...args)
  witness.saw(`stdout of ${args.join(' ')}`, ended.stdout, allowed)
  witness.saw(`stderr of ${args.join(' ')}`, ended.stderr)
  return ended
}
