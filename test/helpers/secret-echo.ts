/** What upstreams say when they repeat what they were sent: one answer per bad habit, in the wire format of the provider. */
import type { RecordedRequest, Step } from './fake-upstream.ts'

/** What a request carried. */
export interface Sent {
  readonly key: string
  /** Headers and URL. */
  readonly all: string
}

export function sentBy({ headers, path }: Pick<RecordedRequest, 'headers' | 'path'>): Sent {
  const credential = [headers.authorization, headers['x-api-key'], headers['x-goog-api-key']].find(value => typeof value === 'string')
  return { key: String(credential ?? '').replace(/^Bearer /, ''), all: `${path} ${JSON.stringify(headers)}` }
}

const failure = (status: number, message: string, headers: Readonly<Record<string, string>> = {}): readonly Step[] => [
  { status, body: { error: { message, code: 'bad', type: 'bad', status: 'BAD' } }, headers }
]

/** Failing answers by name. */
export const echoes: Readonly<Record<string, (sent: Sent) => readonly Step[]>> = {
  'the key in a 401': ({ key }) => failure(401, `Incorrect API key provided: ${key}.`),
  'the beginning of the key in a 403': ({ key }) => failure(403, `key ${key.slice(0, 14)}**** is blocked`),
  'the key where a long text is cut': ({ key }) => failure(400, `${'bad '.repeat(122)}${key}`),
  'all headers in a 400': ({ all }) => failure(400, all),
  'all headers in a plain 500': ({ all }) => [{ status: 500, body: `cannot serve ${all}` }],
  'the key in a page': ({ key }) => [{ status: 503, body: `<html><body>${key}</body></html>` }],
  'the key in base64': ({ key }) => failure(400, `Basic ${Buffer.from(`user:${key}`).toString('base64')} is no credential`),
  'the key in a URL': ({ key }) => failure(422, `see https://help.example/?k=${encodeURIComponent(key)}`),
  'the key in JSON in a text': ({ key }) => failure(400, JSON.stringify({ sent: JSON.stringify({ key }) })),
  'the key in a redirect': ({ key }) => [
    {
      status: 302,
      body: `Found. Redirecting to https://h.example/?k=${key}`,
      headers: { location: `https://h.example/?k=${encodeURIComponent(key)}` }
    }
  ],
  'the key in the headers of a failure': ({ key }) => failure(400, 'no', { 'x-request-id': token(key), 'x-trace-id': token(key) }),
  'the key in the headers of a success': ({ key }) => [
    { headers: { 'x-request-id': token(key), 'x-trace-id': token(key) } },
    { text: 'fine' }
  ],
  'the key in an error that is no failure': ({ key }) => [
    { status: 200, body: { error: { message: `no ${key}` } }, headers: { 'content-type': 'application/json' } }
  ],
  'the key in a content type': ({ key }) => [{ status: 200, body: '<p>', headers: { 'content-type': `text/html; key=${token(key)}` } }],
  'the key in the middle of a stream': ({ key }) => [
    { text: 'Well, ' },
    {
      raw: `data: ${JSON.stringify({ type: 'error', message: `bad ${key}`, error: { message: `bad ${key}`, code: 500, type: key } })}\n\n`
    },
    { end: true }
  ],
  'the key as an event': ({ key }) => [{ raw: `data: ${key}\n\n` }, { end: true }],
  'the key as the finish reason': ({ key }) => [{ text: 'fine' }, { finish: key }]
}

/** As a header may carry it. */
const token = (key: string) => key.replace(/[^\w-]/g, '')
