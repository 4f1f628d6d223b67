/** The connection of one client to one other server: frames that are asked there, and what comes from there for the client. */
import { AppError, type Cursor, OwnerSilent, type RemoteAck, type RemoteClient, type RemotePorts, sessionGone } from '../../kernel/index.ts'
import { type Place, type RelayedEnd, Unreached } from './owner.ts'

const eventHead =
  /^\{"type":"((?:[^"\\]|\\.)*)","seq":(\d+),"epoch":"([^"]*)","session_id":"((?:[^"\\]|\\.)*)","timestamp":"[^"]*"(,"volatile":true)?/
const headBytes = 600

/** What an event begins with. */
export interface Head {
  readonly type: string
  readonly seq: number
  readonly epoch: string
  readonly session_id: string
  readonly durable: boolean
}

/** What the bytes of an event begin with; undefined: it is none. */
export function headOf(message: Buffer): Head | undefined {
  const found = eventHead.exec(message.toString('latin1', 0, headBytes))
  if (!found) return undefined
  const [, type, seq, epoch, session_id, volatile] = found as unknown as [string, string, string, string, string, string?]
  return { type, seq: Number(seq), epoch, session_id, durable: volatile === undefined }
}

/** The answers of `event` and `resync` say whether it is for the client. */
interface LinkPorts {
  event(link: Link, head: Head): boolean
  readonly once: RemotePorts['once']
  resync(link: Link, session_id: string, at: Cursor): boolean
  gone(link: Link, session_id: string): void
  closed(link: Link, code: number, reason: string): void
}

/** Rejects with Unreached what was certainly not done there, with OwnerSilent what may have been. */
export class Link {
  readonly #connection: RemoteClient
  readonly #ports: LinkPorts
  readonly #asked = new Map<string, { resolve(ack: RemoteAck): void; reject(error: Error): void }>()
  #end: RelayedEnd | undefined
  #over = false
  #next = 0

  private constructor(connection: RemoteClient, ports: LinkPorts) {
    this.#connection = connection
    this.#ports = ports
  }

  static async open(place: Place, connection: RemoteClient, ports: LinkPorts): Promise<Link> {
    const link = new Link(connection, ports)
    const { principal } = connection
    const { remote_address, user_agent } = connection.info()
    link.#end = await place.connect({
      principal,
      remote_address,
      user_agent,
      message: (data, binary) => link.#message(data, binary),
      closed: (code, reason) => link.#closed(code, reason)
    })
    if (link.#over) throw new Unreached()
    if (!connection.open) link.close()
    return link
  }

  get over(): boolean {
    return this.#over
  }

  ask(frame: object, bytes?: Uint8Array): Promise<RemoteAck> {
    const id = `r${this.#next++}`
    return new Promise((resolve, reject) => {
      if (this.#over || !this.#end) {
        reject(new Unreached())
        return
      }
      this.#asked.set(id, { resolve, reject })
      const text = Buffer.from(JSON.stringify({ ...frame, id }))
      if (bytes) this.#end.send(Buffer.concat([text, Buffer.from('\n'), bytes]), true)
      else this.#end.send(text, false)
    })
  }

  /** Resolves when it is done, or the subscription has gone with its server. */
  async unsubscribe(session_id: string): Promise<void> {
    await this.ask({ type: 'unsubscribe', payload: { session_ids: [session_id] } }).catch(() => undefined)
  }

  close(): void {
    if (this.#over) return
    this.#over = true
    this.#end?.close()
    this.#fail()
  }

  #message(data: Buffer, binary: boolean): unknown {
    const head = binary ? '' : data.toString('latin1', 0, headBytes)
    if (head.startsWith('{"type":"ack"')) {
      const { id, ...ack } = JSON.parse(data.toString('utf8')) as RemoteAck & { id: string }
      const asked = this.#asked.get(id)
      this.#asked.delete(id)
      asked?.resolve(ack)
      return undefined
    }
    if (head.startsWith('{"type":"server_hello"')) return undefined
    if (head.startsWith(`{"type":"${sessionGone}"`)) {
      this.#ports.gone(this, (JSON.parse(data.toString('utf8')) as { session_id: string }).session_id)
      return undefined
    }
    const event = binary ? undefined : headOf(data)
    if (event) {
      if (!this.#ports.event(this, event)) return undefined
      if (!this.#connection.takes(this.#ports.once(event.type, event.session_id, event.seq))) return undefined
    } else if (head.startsWith('{"type":"resync_required"')) {
      const { payload } = JSON.parse(data.toString('utf8')) as { payload: { session_id: string; current_seq: number; epoch?: string } }
      if (!this.#ports.resync(this, payload.session_id, { seq: payload.current_seq, epoch: payload.epoch })) return undefined
    }
    this.#connection.write(data, binary)
    return this.#connection.writable ? undefined : this.#connection.drained()
  }

  #closed(code: number, reason: string): void {
    if (this.#over) return
    this.#over = true
    this.#fail()
    this.#ports.closed(this, code, reason)
  }

  #fail(): void {
    for (const { reject } of this.#asked.values()) reject(new AppError(OwnerSilent)) // it may have been done
    this.#asked.clear()
  }
}
