/** An authorization server and account service for tests: real HTTP, scripted answers, recorded requests. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface FakeAnswer {
  readonly status?: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Sends the head and the first byte of the body, then nothing. */
  readonly stall?: true
  /** Never answers; the connection stays until the client or the server goes. */
  readonly hang?: true
  /** Resets the connection. */
  readonly cut?: true
}

export interface FakeRequest {
  readonly path: string
  readonly method: string
  readonly headers: IncomingHttpHeaders
  /** Fields of a form. */
  readonly form: Readonly<Record<string, string>>
  /** Resolves when the exchange is over: `client` when the client went away before the answer was complete. */
  readonly closed: Promise<'client' | 'done'>
}

/** What one question is answered: a list is played once, its last entry repeats. */
export type FakeScript = readonly FakeAnswer[] | ((request: FakeRequest, n: number) => FakeAnswer | Promise<FakeAnswer>)
export type FakeQuestion = 'device' | 'poll' | 'refresh' | 'models' | 'usages' | 'me'

export interface FakeOauth {
  readonly url: string
  readonly oauth_host: string
  readonly api_base_url: string
  /** Requests of a question so far. */
  asked(question: FakeQuestion): readonly FakeRequest[]
  /** Resolves when the question was asked `count` times in all. */
  reached(question: FakeQuestion, count: number): Promise<void>
  /** Replaces a script; it starts with its first entry. */
  answer(question: FakeQuestion, script: FakeScript): void
  close(): Promise<void>
}

/** Error answer of the token endpoint. */
export const refused = (error: string, status = 400, text?: string): FakeAnswer => ({
  status,
  body: { error, ...(text !== undefined && { error_description: text }) }
})

/** Token answer; the tokens carry `n`. */
export const granted = (n: number | string = 1, more: Readonly<Record<string, unknown>> = {}): FakeAnswer => ({
  body: {
    access_token: `access-token-${n}`,
    refresh_token: `refresh-token-${n}`,
    expires_in: 3600,
    token_type: 'Bearer',
    scope: 'all',
    ...more
  }
})

export const deviceCode = (n: number | string = 1, more: Readonly<Record<string, unknown>> = {}): FakeAnswer => ({
  body: {
    device_code: `device-code-${n}`,
    user_code: `CODE-${n}`,
    verification_uri: 'https://login.example/device',
    verification_uri_complete: `https://login.example/device?user_code=CODE-${n}`,
    expires_in: 900,
    interval: 5,
    ...more
  }
})

export const twoModels: FakeAnswer = {
  body: {
    data: [
      { id: 'large', context_length: 262_144, display_name: 'Large', supports_reasoning: true, supports_image_in: true },
      { id: 'small', context_length: 32_768, supports_thinking_type: 'no' }
    ]
  }
}

const usual: Readonly<Record<FakeQuestion, FakeScript>> = {
  device: (_, n) => deviceCode(n + 1),
  poll: [refused('authorization_pending')],
  refresh: (_, n) => granted(`renewed-${n + 1}`),
  models: [twoModels],
  usages: [{ body: {} }],
  me: [{ body: { user_id: 'user-1' } }]
}

export interface FakeOauthOptions {
  /** Origin of a fake model provider: it gets every request that is no question. */
  readonly models_at?: string
}

/** Starts on 127.0.0.1, closed with the test. By default logins stay pending, refreshes are granted and two models are listed. */
export async function fakeOauth(
  t: { after(fn: () => unknown): void },
  scripts: Partial<Record<FakeQuestion, FakeScript>> = {},
  { models_at }: FakeOauthOptions = {}
): Promise<FakeOauth> {
  const script: Record<FakeQuestion, FakeScript> = { ...usual, ...scripts }
  const played = new Map<FakeQuestion, number>()
  const seen = new Map<FakeQuestion, FakeRequest[]>()
  const waiting: { question: FakeQuestion; count: number; resolve: () => void }[] = []
  const asked = (question: FakeQuestion) => seen.get(question) ?? []

  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('error', () => undefined) // the client went away: its test knows
    req.on('end', () => {
      const body = Buffer.concat(chunks)
      const form = Object.fromEntries(new URLSearchParams(body.toString('utf8')))
      const question = questionOf(req.url ?? '', form)
      if (!question) {
        if (models_at) passOn(models_at, req, body, res)
        else res.writeHead(404).end()
        return
      }
      const closed = new Promise<'client' | 'done'>(resolve => res.once('close', () => resolve(res.writableFinished ? 'done' : 'client')))
      const request = { path: req.url ?? '', method: req.method ?? '', headers: req.headers, form, closed }
      seen.set(question, [...asked(question), request])
      const n = played.get(question) ?? 0
      played.set(question, n + 1)
      const current = script[question]
      const answer = typeof current === 'function' ? current(request, n) : (current[Math.min(n, current.length - 1)] ?? {})
      for (const entry of waiting.filter(one => one.question === question && asked(question).length >= one.count)) entry.resolve()
      void Promise.resolve(answer).then(({ status = 200, body, headers, stall, hang, cut }) => {
        if (hang) return
        if (cut) {
          res.destroy()
          return
        }
        res.writeHead(status, { 'content-type': 'application/json', ...headers })
        if (stall) res.write('{')
        else res.end(typeof body === 'string' ? body : JSON.stringify(body ?? {}))
      })
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = () =>
    new Promise<void>(resolve => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  t.after(close)
  return {
    url,
    oauth_host: url,
    api_base_url: `${url}/v1`,
    asked,
    reached(question, count) {
      if (asked(question).length >= count) return Promise.resolve()
      return new Promise(resolve => waiting.push({ question, count, resolve }))
    },
    answer(question, next) {
      script[question] = next
      played.delete(question)
    },
    close
  }
}

/** Streams the request to the model provider and its answer back; a client that goes away is passed on, too. */
function passOn(origin: string, req: IncomingMessage, body: Buffer, res: ServerResponse): void {
  const { hostname, port } = new URL(origin)
  const out = request({ host: hostname, port, method: req.method, path: req.url, headers: req.headers }, answer => {
    res.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(res)
  })
  out.on('error', () => res.destroy())
  res.on('close', () => out.destroy())
  out.end(body)
}

function questionOf(path: string, form: Readonly<Record<string, string>>): FakeQuestion | undefined {
  if (path === '/api/oauth/device_authorization') return 'device'
  if (path === '/api/oauth/token') return form.grant_type === 'refresh_token' ? 'refresh' : 'poll'
  if (path === '/v1/models') return 'models'
  if (path === '/v1/usages') return 'usages'
  return path === '/v1/me' ? 'me' : undefined
}
