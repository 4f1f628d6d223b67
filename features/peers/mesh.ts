/** The other servers of the home as this one sees them: found in the directory, linked, silent, gone. */
import type { Server } from 'node:http'
import type { Server as Listener, Socket } from 'node:net'
import { join } from 'node:path'
import type { Logger, Relays, SharedEvent } from '../../kernel/index.ts'
import { clientOver, takeClient } from './clients.ts'
import { Directory, type Entry } from './directory.ts'
import { dialChannel, homeSecret, listenToChannels, NoAnswer } from './handshake.ts'
import { Link } from './link.ts'
import { type OwnerHook, ownerFinder, type Place, Unreached, wayTo } from './owner.ts'
import { answering, Requests } from './requests.ts'
import type { PeerTopic } from './service.ts'
import { ClientSessions } from './wherever.ts'

/** With the id of the server that dials. */
const linkPurpose = 'link '
const againMs = 250
/** While other servers are known, or could not be read, they are looked for so often, beside what the watch of the directory says. */
const lookMs = 2000

export interface MeshPorts {
  readonly home: string
  readonly server_id: string
  readonly log: Logger
  readonly relays: Relays
  readonly topics: () => readonly PeerTopic[]
  readonly owner: OwnerHook
}

interface Peer {
  readonly entry: Entry
  readonly requests: Requests
  link: Link | undefined
  /** Its link broke, which topics have not been told. */
  broken: boolean
  /** It did not answer when it was dialled, and has not been linked since. */
  deaf: boolean
  dialing: boolean
  /** Clients of this server that have a session there. */
  readonly clients: Set<Socket>
}

/** One that is linked and speaks may only be slow to answer. */
const isSilent = ({ link, deaf }: Peer) => (link ? link.silent : deaf)

export class Mesh {
  readonly #ports: MeshPorts
  readonly #directory: Directory
  readonly #peers = new Map<string, Peer>()
  readonly #answering: Server
  /** By which others pass requests on: what does not listen itself knows nothing of its connections. */
  readonly #asking = new Set<Socket>()
  #secret = ''
  #listener: Listener | undefined
  #looking: Promise<void> | undefined
  #lookAgain = false
  #timer: NodeJS.Timeout | undefined
  #unshare: (() => void) | undefined
  #opening: Promise<void> | undefined
  #closed = false

  constructor(ports: MeshPorts) {
    this.#ports = ports
    this.#directory = new Directory(ports.home, ports.server_id)
    this.#answering = answering(ports.relays)
    const find = ownerFinder(ports.owner)
    ports.relays.setElsewhere({
      get others() {
        return ports.owner.isUsed()
      },
      way: session_id => wayTo(session_id, find),
      remote: (client, here) => new ClientSessions(client, here, find)
    })
  }

  /** Listens, and resolves when the servers that are there already are known. */
  open(): Promise<void> {
    this.#opening ??= this.#open()
    return this.#opening
  }

  async #open(): Promise<void> {
    const { home, server_id } = this.#ports
    this.#secret = await homeSecret(join(home, 'server'))
    const { server, port } = await listenToChannels(this.#secret, server_id, (socket, purpose) => this.#take(socket, purpose))
    this.#listener = server
    if (this.#closed) {
      server.close()
      return
    }
    await this.#directory.announce(port, () => void this.look())
    await this.look()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#ports.relays.setElsewhere(undefined)
    clearTimeout(this.#timer)
    this.#unshare?.()
    await this.#opening?.catch(() => undefined) // whoever opened heard of it; what it announced is taken back
    this.#listener?.close()
    await this.#directory.withdraw()
    await this.#looking
    for (const peer of this.#peers.values()) {
      peer.requests.close()
      peer.link?.close()
    }
    for (const socket of this.#asking) socket.destroySoon()
  }

  servers(): string[] {
    return [...this.#peers.keys()]
  }

  link(server_id: string): Link | undefined {
    return this.#peers.get(server_id)?.link
  }

  links(): Link[] {
    return [...this.#peers.values()].flatMap(peer => peer.link ?? [])
  }

  silent(server_id: string): boolean {
    const peer = this.#peers.get(server_id)
    return !peer?.link || peer.link.silent
  }

  place(id: string): Place | undefined {
    const peer = this.#peers.get(id)
    if (!peer) return undefined
    const refuse = () => {
      if (isSilent(peer)) throw new Unreached(undefined, true)
    }
    return {
      id,
      relay: async (...asked) => {
        refuse()
        return await peer.requests.ask(...asked)
      },
      connect: async client => {
        refuse()
        const socket = await this.#dial(peer, 'client')
        peer.clients.add(socket)
        socket.once('close', () => peer.clients.delete(socket))
        return clientOver(socket, client)
      }
    }
  }

  /** Looks who is there; once more when something changed meanwhile. */
  look(): Promise<void> {
    this.#lookAgain = true
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #look(): Promise<void> {
    let isUnsure = false
    while (this.#lookAgain && !this.#closed) {
      this.#lookAgain = false
      isUnsure = false
      const known = [...this.#peers.values()].map(({ entry }) => entry)
      const found = await this.#directory.others(known, () => {
        isUnsure = true
      })
      if (this.#closed) return
      for (const peer of [...this.#peers.values()]) {
        if (!found.some(entry => entry.server_id === peer.entry.server_id)) this.#gone(peer)
      }
      for (const entry of found) if (!this.#peers.has(entry.server_id)) this.#found(entry)
    }
    clearTimeout(this.#timer)
    if ((isUnsure || this.#peers.size > 0) && !this.#closed) this.#timer = setTimeout(() => void this.look(), lookMs).unref()
  }

  #found(entry: Entry): void {
    const peer: Peer = {
      entry,
      requests: new Requests(() => this.#dial(peer, 'http')),
      link: undefined,
      broken: false,
      deaf: false,
      dialing: false,
      clients: new Set()
    }
    this.#peers.set(entry.server_id, peer)
    if (this.#peers.size === 1) {
      this.#unshare = this.#ports.relays.onShared(event => {
        for (const link of this.links()) link.share(event)
      })
      this.#each(topic => topic.present?.(true))
    }
    void this.#keepLinked(peer)
  }

  #gone(peer: Peer): void {
    const { server_id } = peer.entry
    this.#peers.delete(server_id)
    peer.requests.close()
    peer.link?.close()
    this.#each(topic => topic.left?.(server_id, true))
    if (this.#peers.size > 0) return
    this.#unshare?.()
    this.#each(topic => topic.present?.(false))
  }

  /** Of two servers the younger one dials. */
  async #keepLinked(peer: Peer): Promise<void> {
    const { server_id } = peer.entry
    if (peer.dialing || server_id > this.#ports.server_id) return
    peer.dialing = true
    while (!this.#closed && this.#peers.get(server_id) === peer && !peer.link) {
      try {
        this.#linked(peer, await this.#dial(peer, `${linkPurpose}${this.#ports.server_id}`))
      } catch {
        if (await this.#directory.isGone(peer.entry)) void this.look()
        await new Promise(resolve => setTimeout(resolve, againMs).unref())
      }
    }
    peer.dialing = false
  }

  #linked(peer: Peer, socket: Socket): void {
    const { server_id } = peer.entry
    const old = peer.link
    const link: Link = new Link(socket, {
      shared: (event: SharedEvent) => this.#ports.relays.deliver(event),
      told: (name, payload) => this.#each(topic => (topic.topic === name ? topic.told?.(payload, server_id) : undefined)),
      asked: async (name, payload) => {
        const topic = this.#ports.topics().find(each => each.topic === name && each.asked)
        if (!topic) throw new Error(`nobody answers '${name}' here`)
        return await topic.asked?.(payload, server_id)
      },
      silent: isSilent => {
        this.#ports.log.warn(
          { server_id },
          isSilent ? 'another server of the home says nothing' : 'another server of the home speaks again'
        )
        if (!isSilent) return
        peer.requests.giveUp()
        for (const socket of peer.clients) socket.destroy() // they look for their sessions anew
      },
      closed: () => {
        if (peer.link !== link) return
        peer.link = undefined
        peer.broken = true
        if (this.#closed) return
        void this.look().then(() => {
          if (this.#peers.get(server_id) !== peer) return
          this.#tellBreak(peer)
          void this.#keepLinked(peer)
        })
      }
    })
    peer.link = link
    peer.deaf = false
    old?.close()
    if (this.#closed) {
      link.close()
      return
    }
    this.#tellBreak(peer) // the other one may be quicker than the look whether it has ended
    this.#each(topic => topic.joined?.(server_id))
  }

  #tellBreak(peer: Peer): void {
    if (!peer.broken) return
    peer.broken = false
    this.#each(topic => topic.left?.(peer.entry.server_id, false))
  }

  async #dial(peer: Peer, purpose: string): Promise<Socket> {
    const { port, server_id: id } = peer.entry
    try {
      return await dialChannel(port, this.#secret, { purpose, id })
    } catch (cause) {
      if (cause instanceof NoAnswer) peer.deaf = true
      throw new Unreached(cause, isSilent(peer))
    }
  }

  #take(socket: Socket, purpose: string): void {
    if (this.#closed) socket.destroy()
    else if (purpose === 'http') {
      this.#asking.add(socket)
      socket.once('close', () => this.#asking.delete(socket))
      this.#answering.emit('connection', socket)
      socket.resume()
    } else if (purpose === 'client') takeClient(socket, this.#ports.relays)
    else if (purpose.startsWith(linkPurpose)) void this.#introduce(purpose.slice(linkPurpose.length), socket)
    else socket.destroy()
  }

  async #introduce(from: string, socket: Socket): Promise<void> {
    if (!this.#peers.has(from)) await this.look()
    const peer = this.#peers.get(from)
    if (peer && !this.#closed) this.#linked(peer, socket)
    else socket.destroy()
  }

  #each(tell: (topic: PeerTopic) => unknown): void {
    for (const topic of this.#ports.topics()) {
      try {
        tell(topic)
      } catch (err) {
        this.#ports.log.error({ err, topic: topic.topic }, 'a topic between servers failed')
      }
    }
  }
}
