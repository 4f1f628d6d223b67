/** REST: openapi-fetch on the paths of the server, with the token, and what turns an envelope into data or an error. */
import createFetchClient, { type Client } from 'openapi-fetch'
import type { paths } from './types.ts'

/** A fixed token, or where to ask for the one that holds now: a server may get another while it runs. */
export type Token = string | (() => string | Promise<string>)

export interface RestOptions {
  /** Origin of the server: `http://127.0.0.1:58627`. */
  readonly url: string
  readonly token: Token
  /** Default: that of the platform. */
  readonly fetch?: (request: Request) => Promise<Response>
}

export type Rest = Client<paths>

type DataIn<Answer> = Answer extends { msg: 'success'; data: infer Data } ? Data : Answer extends undefined ? undefined : never

/** Data of a resolved answer of `rest`. */
export type DataOf<Answer> = Answer extends { data: infer Body } ? DataIn<Body> : never

type Operation<Path extends keyof paths, Method extends string> = Method extends keyof paths[Path] ? paths[Path][Method] : never
type Body<Reply> = Reply extends { content: { 'application/json': infer Answer } } ? Answer : never
type Reply<Responses> = 200 extends keyof Responses ? Responses[200] : 201 extends keyof Responses ? Responses[201] : never

/** Data of a route: `Data<'/api/v1/sessions', 'get'>`. */
export type Data<Path extends keyof paths, Method extends string> =
  Operation<Path, Method> extends { responses: infer Responses } ? DataIn<Body<Reply<Responses>>> : never

/** State of a session from which a client builds its own, and the position that it is of. */
export type Snapshot = Data<'/api/v1/sessions/{session_id}/snapshot', 'get'>

/** An envelope that is no success, or an answer that is no envelope (`code` -1). */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  /** Code of the envelope, such as 40401. */
  readonly code: number
  /** HTTP status. */
  readonly status: number
  readonly data: unknown
  /** With 40001: `[{ path, message }]`. */
  readonly details: unknown
  readonly request_id: string | undefined

  constructor(answer: { code?: unknown; msg?: unknown; data?: unknown; details?: unknown; request_id?: unknown }, status: number) {
    super(typeof answer.msg === 'string' ? answer.msg : `the server answered HTTP ${status} without an envelope`)
    this.code = typeof answer.code === 'number' ? answer.code : -1
    this.status = status
    this.data = answer.data
    this.details = answer.details
    this.request_id = typeof answer.request_id === 'string' ? answer.request_id : undefined
  }
}

/** Opens nothing: every call is one request. */
export function createRest({ url, token, fetch }: RestOptions): Rest {
  const client = createFetchClient<paths>({ baseUrl: url, ...(fetch ? { fetch } : {}) })
  client.use({
    async onRequest({ request }) {
      request.headers.set('authorization', asHeader(`Bearer ${await tokenOf(token)}`))
      return request
    }
  })
  return client
}

/** A header is made of bytes, one per character: a password goes as UTF-8. */
const asHeader = (text: string) => String.fromCharCode(...new TextEncoder().encode(text))

export async function tokenOf(token: Token): Promise<string> {
  return typeof token === 'string' ? token : await token()
}

/** The data of an answer; throws ApiError when it is a failure. What the network throws passes as it is. */
export async function unwrap<Answer extends { data?: unknown; error?: unknown; response: Response }>(
  pending: Promise<Answer>
): Promise<DataOf<Answer>> {
  const { data, error, response } = await pending
  if (response.status === 204) return undefined as DataOf<Answer>
  const body = data ?? error
  const answer = (typeof body === 'object' && body !== null ? body : {}) as { code?: unknown; msg?: unknown; data?: unknown }
  // A question that was dismissed is a success with a code of its own.
  if (answer.code === 0 || (answer.msg === 'success' && answer.code !== undefined)) return answer.data as DataOf<Answer>
  throw new ApiError(answer, response.status)
}
