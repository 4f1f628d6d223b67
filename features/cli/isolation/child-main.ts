/** The process of one pack: `node child-main.js`, started by the server, with a channel to it. */
import { isMainThread, Worker } from 'node:worker_threads'
import type { Pack } from '../../../kernel/index.ts'
import { Scope } from '../../../kernel/lifecycle/scope.ts'
import { createLog, type LogLevel, levels } from '../../../kernel/log/log.ts'
import { guardOutbound } from '../../llm/index.ts'
import { loadPacks } from '../load-pack.ts'
import { childContext, type Given } from './child-context.ts'
import { takingListeners } from './child-services.ts'
import { ChildWire } from './child-wire.ts'
import { factsOf, type PackFacts } from './facts.ts'
import { channels } from './framing.ts'
import { Peer } from './peer.ts'
import { Spec } from './values.ts'

interface Begin {
  readonly env: Readonly<Record<string, string>>
  readonly spec: string
  readonly from: string
}

/** How long background work and clean-ups may take when the pack leaves, ms. */
const graceMs = 4_000

const wire = new ChildWire()
let packs: readonly Pack[] = []
let scope = new Scope()

const root = {
  /** Imports the module; tells what packs it has. */
  async begin(given: Begin): Promise<Spec> {
    Object.assign(process.env, given.env)
    // The process is its own: whatever the module does to it is told as its end.
    const loaded = await loadPacks([given], [], { watch: (_file, work) => work() })
    packs = loaded.packs
    if (loaded.failed.length > 0) throw packs.find(pack => pack.broken)?.broken ?? new Error(loaded.failed.join('; '))
    return new Spec(packs.map((pack): PackFacts => factsOf(pack)))
  },
  async setup(given: Given, services: Readonly<Record<string, unknown>>): Promise<void> {
    const pack = packs.find(one => one.name === given.name)
    if (!pack) throw new Error(`its file brings no pack named '${given.name}' any more`)
    scope = new Scope()
    const log = createLog({ level: given.level as LogLevel, to: { write: tellLine } }, '')
    const context = childContext(given, { peer, log, scope, graceMs })
    await pack.setup(context, takingListeners(pack, services) as never)
    watchServer()
  },
  async stop(): Promise<void> {
    for (const error of await scope.close(undefined, graceMs)) peer.tell(0, 'blame', [undefined, 'clean-up', error])
  }
}

const peer = new Peer({ wire, root, server: false, failed: (what, error) => peer.tell(0, 'blame', [undefined, what, error]) })

/** A line of its log, which the server writes. */
function tellLine(line: string): void {
  const { level, time: _time, pid: _pid, msg, ...facts } = JSON.parse(line) as Record<string, unknown>
  peer.tell(0, 'log', [levels.labels[Number(level)] ?? 'info', facts, msg === undefined ? undefined : String(msg)])
}

wire.listen((message, bytes) => {
  if (message.b !== undefined) wire.send({ b: process.memoryUsage.rss() }, [])
  else peer.receive(message, bytes)
})

wire.send({ b: process.memoryUsage.rss() }, []) // it has started: from now on silence counts

guardOutbound(async url => void (await peer.call(0, 'outbound', [url])))

// The server says when it is over; a Ctrl+C at its terminal reaches this process, too.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
process.on('unhandledRejection', error => peer.tell(0, 'blame', [undefined, 'a promise that nobody waited for', error]))
process.on('uncaughtException', error => {
  peer.tell(0, 'escaped', [error])
  process.exit(1)
})

/** A loop without end hears nothing of the server's end: a thread does. */
function watchServer(): void {
  if (!isMainThread) return
  const text = `const socket = new (require('node:net').Socket)({ fd: ${channels.life}, readable: true, writable: false })
socket.on('error', () => undefined).on('close', () => process.kill(process.pid, 'SIGKILL')).resume()`
  new Worker(text, { eval: true, stdin: false, resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 } }).unref()
}
