/**
 * Requests of a command to a server on this machine. For the first of them the platform's `fetch` compiles a parser of HTTP and optimizes it, which
 * is as much as all else that a command does.
 */
import { request } from 'node:http'

export async function nearFetch(asked: Request): Promise<Response> {
  const { url, method, headers, signal } = asked
  const body = asked.body === null ? undefined : await asked.text()
  return await new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: Object.fromEntries(headers), signal }, answer => {
      const parts: Buffer[] = []
      answer.on('data', (part: Buffer) => parts.push(part))
      answer.on('error', reject)
      answer.on('end', () => {
        const { statusCode: status = 0, headersDistinct } = answer
        const told = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
          values.map((value): [string, string] => [name, value])
        )
        resolve(new Response(status === 204 ? null : Buffer.concat(parts), { status, headers: told }))
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
