/** A server process whose answers are judged by its own `/openapi.json`, and the bytes of its home. */
import { readdir, readFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { RestClient, SocketClient } from '../../kernel/testing.ts'
import { type Running, serveWith } from './cli.ts'
import { type Document, schemaJudge } from './documents.ts'

interface TestLike {
  after(fn: () => unknown): void
}

/** What one request of a route is like. */
export interface Asked {
  /** Value of each path parameter; sent percent-encoded. */
  readonly path?: Readonly<Record<string, string>>
  /** The path as it is sent, when it is no value of the template: a bad action tail. */
  readonly url?: string
  readonly query?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent as it is, instead of a body. */
  readonly raw?: string
  readonly headers?: Readonly<Record<string, string>>
  /** null: none. */
  readonly token?: string | null
}

export interface Judged {
  readonly status: number
  /** Of the envelope; undefined when there is no body. */
  readonly code: number | undefined
  readonly msg: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into data of many shapes
  readonly data: any
  readonly request_id: string
  // biome-ignore lint/suspicious/noExplicitAny: a list of details, or an object
  readonly details: any
  /** What `/openapi.json` has against this answer; empty when nothing. */
  readonly problems: string
}

export class JudgedServer {
  readonly running: Running
  readonly home: string
  readonly document: Document
  readonly socket: SocketClient
  readonly #rest: RestClient
  readonly #judge: ReturnType<typeof schemaJudge>

  private constructor(running: Running, home: string, document: Document, socket: SocketClient, rest: RestClient) {
    this.running = running
    this.home = home
    this.document = document
    this.socket = socket
    this.#rest = rest
    this.#judge = schemaJudge(document)
  }

  /** Starts a server on any free port, with variables beside those of this process and more arguments. Ends with the test. */
  static async start(t: TestLike, home: string, env: NodeJS.ProcessEnv = {}, ...args: string[]): Promise<JudgedServer> {
    const running = await serveWith(t, { ...env, SVC_CODE_HOME: home }, '--port', '0', ...args)
    const rest = new RestClient(running.url, running.token)
    t.after(() => rest.close())
    const document = JSON.parse((await rest.raw('GET', '/openapi.json')).body.toString()) as Document
    return new JudgedServer(running, home, document, await SocketClient.open(running.url, running.token), rest)
  }

  /** Sends a request of a route, `POST /api/v1/models/{model_id}:set_default`. */
  async ask(route: string, { path = {}, url, query, body, raw, headers, token }: Asked = {}): Promise<Judged> {
    const [method, template] = route.split(' ') as [string, string]
    const filled = url ?? template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name] ?? 'nobody'))
    const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const answer = await this.#rest.raw(method, query ? `${filled}?${new URLSearchParams(query)}` : filled, {
      headers: { ...(sent !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(sent !== undefined && { body: sent }),
      ...(token !== undefined && { token })
    })
    const { code, msg, data, request_id, details } = answer.body.length > 0 ? JSON.parse(answer.body.toString()) : ({} as Document)
    return { status: answer.status, code, msg, data, request_id, details, problems: this.#problems(method, template, answer) }
  }

  #problems(method: string, template: string, { status, body }: Awaited<ReturnType<RestClient['raw']>>): string {
    const place = ['paths', template, method.toLowerCase(), 'responses', String(status)]
    const response = place.reduce((at, key) => at?.[key], this.document)
    if (!response) return `${method} ${template} documents no status ${status}`
    const base = response.$ref === undefined ? place : response.$ref.slice(2).split('/')
    const content = base.reduce((at: Document, key: string) => at[key], this.document).content
    if (content === undefined) return body.length === 0 ? '' : `a body comes with status ${status}`
    return this.#judge([...base, 'content', 'application/json', 'schema'], JSON.parse(body.toString()))
  }

  /** Every file of the home but the log and what tells that the server lives and where, by its name. */
  async files(): Promise<Record<string, string>> {
    const found: Record<string, string> = {}
    for (const entry of await readdir(this.home, { recursive: true, withFileTypes: true })) {
      const name = relative(this.home, join(entry.parentPath, entry.name)).split(sep).join('/')
      if (entry.isFile() && !/^(logs|server\/instances|server\/peers)\//.test(name))
        found[name] = await readFile(join(this.home, name), 'latin1')
    }
    return found
  }
}
