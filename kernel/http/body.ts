/** Reads request bodies within their limits. */
import { isUtf8 } from 'node:buffer'
import { type IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { type Readable, Transform } from 'node:stream'
import { type AppError, invalid } from '../errors.ts'

/** Time within which a body that is read as a whole must have arrived, or one that nobody reads and that fits, ms. */
export const bodyMs = 300_000

/** Levels of arrays and objects in a JSON body; more would overflow the stack of everything that walks it. */
const maxDepth = 256

const refused = (message: string): AppError => invalid([{ path: 'body', message }])

/** Whether a body comes with the request, as its headers say. */
export const hasBody = ({ headers }: IncomingMessage): boolean => headers['transfer-encoding'] !== undefined || announced(headers) > 0

const announced = (headers: IncomingHttpHeaders): number => Number(headers['content-length'] ?? 0)

/** The bytes of a JSON body; undefined when there are none. Rejects with a 40001 for another content type and more than `limit` bytes. */
export async function readBody(req: IncomingMessage, limit: number): Promise<Buffer | undefined> {
  if (!hasBody(req)) return undefined
  checkType(req)
  if (announced(req.headers) > limit) throw tooLarge(limit)
  const bytes = await readBytes(req, limit)
  return bytes.length === 0 ? undefined : bytes
}

/** The value of a JSON body. Throws a 40001 for what is none. */
export function jsonIn(bytes: Buffer): unknown {
  const parsed = parseJson(bytes)
  if ('problem' in parsed) throw refused(parsed.problem)
  return parsed.value
}

function checkType(req: IncomingMessage): void {
  const given = req.headers['content-type']
  const [type, ...parameters] = (given ?? '').toLowerCase().split(';')
  if (!/^application\/(?:[a-z0-9.-]+\+)?json$/.test(type!.trim())) {
    throw refused(`content type must be application/json${given ? `, not ${given.slice(0, 100)}` : ''}`)
  }
  const charset = parameters.map(part => part.trim()).find(part => part.startsWith('charset='))
  if (charset && !/^charset="?(?:utf-?8|us-ascii)"?$/.test(charset)) throw refused('charset must be utf-8')
  const encoding = req.headers['content-encoding']
  if (encoding && encoding.toLowerCase() !== 'identity') throw refused(`content encoding '${encoding.slice(0, 100)}' is not supported`)
}

const tooLarge = (limit: number) => refused(`is larger than ${limit} bytes`)

/**
 * The bytes of a body as they arrive; ends in a 40001 when there are more than `limit`. Throws it at once when the body is announced
 * larger. The source is not destroyed: its connection still carries the answer.
 */
export function limitedStream(source: Readable, limit: number): Readable {
  if (source instanceof IncomingMessage && announced(source.headers) > limit) throw tooLarge(limit)
  let size = 0
  const limited = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length
      if (size > limit) done(tooLarge(limit))
      else done(null, chunk)
    }
  })
  limited.on('error', () => undefined) // a handler that does not read is not hurt; one that reads hears of it
  const cut = () => {
    if (!source.readableEnded) limited.destroy(refused('ended early'))
  }
  if (source.destroyed) cut() // its 'close' may be over
  source.on('error', error => limited.destroy(error))
  source.once('close', cut)
  return source.pipe(limited)
}

function readBytes(req: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (req.destroyed) return reject(refused('ended early')) // its 'close' is over and would be waited for in vain
    const chunks: Buffer[] = []
    let size = 0
    const settle = (act: () => void) => {
      clearTimeout(timer)
      req.off('data', take)
      req.off('end', end)
      req.off('close', cut)
      act()
    }
    const take = (chunk: Buffer) => {
      size += chunk.length
      if (size > limit) settle(() => reject(tooLarge(limit)))
      else chunks.push(chunk)
    }
    const end = () => settle(() => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size)))
    const cut = () => settle(() => reject(refused('ended early')))
    const timer = setTimeout(() => settle(() => reject(refused('did not arrive in time'))), bodyMs)
    req.on('error', () => undefined) // 'close' follows and settles
    req.on('data', take)
    req.on('end', end)
    req.on('close', cut)
  })
}

/** JSON of a client, or what is wrong with it. `__proto__` is no key of it; at most 256 levels deep. */
export function parseJson(bytes: Buffer): { readonly value: unknown } | { readonly problem: string } {
  if (!isUtf8(bytes)) return { problem: 'is not valid UTF-8' }
  const text = bytes.toString('utf8')
  if (tooDeep(text)) return { problem: `is nested more than ${maxDepth} levels deep` }
  try {
    const source = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
    // JSON.parse makes `__proto__` an own property, which a later copy by assignment would turn into a prototype.
    return {
      value: /__proto__|\\u/i.test(source)
        ? JSON.parse(source, (key, value) => (key === '__proto__' ? undefined : value))
        : JSON.parse(source)
    }
  } catch {
    return { problem: 'is not valid JSON' }
  }
}

/** Counts brackets outside strings; strings, where the bulk of a large body is, are skipped at the speed of a search. */
function tooDeep(text: string): boolean {
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x22) {
      i = endOfString(text, i)
      if (i < 0) return false // no JSON: the parser says so
    } else if (code === 0x5b || code === 0x7b) {
      if (++depth > maxDepth) return true
    } else if (code === 0x5d || code === 0x7d) depth--
  }
  return false
}

/** Index of the quote that ends the string beginning at `start`, -1 when there is none. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end > 0; end = text.indexOf('"', end + 1)) {
    let slashes = end - 1
    while (text[slashes] === '\\') slashes--
    if ((end - slashes) % 2 === 1) return end
  }
  return -1
}
