/** Wires terminals: their routes and frames, and their end with the session. */
import { AppError, definePack, defineSlot, KernelInfo, Type } from '../../kernel/index.ts'
import { localRuntime, RuntimeMissing, RuntimeUnavailable, type Session, SessionMissing, Sessions } from '../sessions/index.ts'
import {
  attach,
  close,
  closeTerminal,
  createTerminal,
  detach,
  exit,
  input,
  listTerminals,
  output,
  readTerminal,
  resize,
  TerminalMissing
} from './contract.ts'
import { directoryOf, shellOf } from './place.ts'
import { type Terminal, terminalStarter } from './terminal.ts'

/** Terminals of a session that have ended and whose output is kept. */
const keptEnded = 16

export default definePack({
  name: 'terminals',
  description: 'Terminals of the user, in the directory of a session',
  area: 'Files',
  needs: { info: KernelInfo, sessions: Sessions },
  config: Type.Object({
    remote: Type.Boolean({ default: false, description: 'also on a server that other machines reach' }),
    max_per_session: Type.Integer({ minimum: 1, default: 32, description: 'terminals that run in one session' }),
    scrollback_chars: Type.Integer({ minimum: 1024, default: 1024 * 1024, description: 'output that is kept for who attaches later' })
  }),
  async setup(ctx, { info, sessions }) {
    if (!info.loopback && !ctx.config.remote) {
      ctx.log.info('terminals are off: the server listens on more than this machine (option `remote`)')
      return
    }
    const { max_per_session, scrollback_chars } = ctx.config
    const slot = defineSlot('terminals', (session: Session) => {
      const terminals = new Map<string, Terminal>()
      return {
        terminals,
        keep: undefined as (() => void) | undefined,
        /** The session stays loaded while something runs. */
        changed() {
          const ended = [...terminals.values()].filter(terminal => !terminal.running)
          for (const terminal of ended.slice(0, -keptEnded)) terminal.forget()
          if (ended.length < terminals.size) this.keep ??= session.keep()
          else {
            this.keep?.()
            this.keep = undefined
          }
        },
        close: async () => void (await Promise.all([...terminals.values()].map(terminal => terminal.close())))
      }
    })
    ctx.slot(slot)
    sessions.onArchive(async session => await session.peek(slot)?.close())

    const of = async (session_id: string) => (await sessions.load(session_id)).get(slot)
    const find = async ({ session_id, terminal_id }: { readonly session_id: string; readonly terminal_id: string }) => {
      const found = (await of(session_id)).terminals.get(terminal_id)
      if (!found) throw new AppError(TerminalMissing)
      return found
    }
    const alive = async (ids: { readonly session_id: string; readonly terminal_id: string }) => {
      if (!(await sessions.exists(ids.session_id))) throw new AppError(SessionMissing)
      const terminal = await find(ids)
      if (!terminal.running) throw new AppError(TerminalMissing, { message: 'the terminal has ended' })
      return terminal
    }

    ctx.route(listTerminals, async ({ params: { session_id } }) => ({
      items: [...(await of(session_id)).terminals.values()].map(terminal => terminal.object())
    }))
    ctx.route(createTerminal, async ({ params: { session_id }, body: { runtime_id, cwd: given, shell: asked, cols, rows } }) => {
      const session = await sessions.load(session_id)
      session.assertWritable()
      if (runtime_id !== localRuntime) throw new AppError(RuntimeMissing)
      const [cwd, shell, open] = [await directoryOf(session.cwd, given), await shellOf(asked), await terminalStarter()]
      session.assertWritable() // from here on nothing waits: others may have opened one, or archived the session
      const held = session.get(slot)
      const running = [...held.terminals.values()].filter(terminal => terminal.running).length
      if (running >= max_per_session)
        throw new AppError(RuntimeUnavailable, { message: `${max_per_session} terminals run in this session already` })
      const id = `term_${ctx.newId()}`
      const options = { id, session_id, cwd, shell, cols, rows, scrollback: scrollback_chars, now: ctx.now, over: () => held.changed() }
      const terminal = open(options)
      held.terminals.set(id, terminal)
      held.changed()
      return terminal.object()
    })
    ctx.route(readTerminal, async ({ params }) => (await find(params)).object())
    ctx.route(closeTerminal, async ({ params }) => {
      ;(await find(params)).kill()
      return { closed: true }
    })

    ctx.outFrame(output)
    ctx.outFrame(exit)
    ctx.frame(attach, async ({ payload, connection }) => ({
      attached: true as const,
      replayed: (await find(payload)).attach(connection, payload.since_seq)
    }))
    ctx.frame(input, async ({ payload }) => {
      if (!(await alive(payload)).write(payload.data))
        throw new AppError(RuntimeUnavailable, {
          message: 'the terminal takes no more input: its program has not read what was typed before'
        })
      return { accepted: true as const }
    })
    ctx.frame(resize, async ({ payload }) => {
      ;(await alive(payload)).resize(payload.cols, payload.rows)
      return { resized: true as const }
    })
    ctx.frame(detach, async ({ payload, connection }) => {
      ;(await find(payload)).detach(connection)
      return { detached: true as const }
    })
    ctx.frame(close, async ({ payload }) => {
      ;(await find(payload)).kill()
      return { closed: true as const }
    })
  }
})
