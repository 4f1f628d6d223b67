/** Wire shapes, routes and frames of terminals (contract 2, Terminals; contract 3, frames of terminals). */
import { defineFrame, defineOutFrame, defineRoute, errorSpec, named, nullable, oneOf, type Static, Time, Type } from '../../kernel/index.ts'
import { RuntimeMissing, RuntimeUnavailable, SessionBusy, SessionMissing } from '../sessions/index.ts'
import { PathOutside } from '../workspaces/index.ts'

export const TerminalMissing = errorSpec('terminal_missing', 40414, 'terminal not found')

const Size = Type.Integer({ minimum: 1, maximum: 10_000 })

export const TerminalObject = named(
  'Terminal',
  Type.Object({
    id: Type.String({ description: 'term_<ULID>' }),
    session_id: Type.String(),
    cwd: Type.String({ description: 'absolute' }),
    shell: Type.String(),
    cols: Size,
    rows: Size,
    status: oneOf(['running', 'exited']),
    created_at: Time,
    exited_at: Type.Optional(Time),
    exit_code: Type.Optional(nullable(Type.Integer({ description: 'null: a signal ended it' })))
  })
)
export type TerminalObject = Static<typeof TerminalObject>

const session = { session_id: Type.String({ minLength: 1 }) }
const one = { ...session, terminal_id: Type.String({ minLength: 1 }) }
const path = '/api/v1/sessions/{session_id}/terminals' as const

export const listTerminals = defineRoute({
  method: 'GET',
  path,
  summary: 'List the terminals of a session, oldest first',
  params: Type.Object(session),
  data: Type.Object({ items: Type.Array(TerminalObject) }),
  errors: [SessionMissing]
})

export const createTerminal = defineRoute({
  method: 'POST',
  path,
  summary: 'Open a terminal',
  params: Type.Object(session),
  body: Type.Object({
    runtime_id: Type.String({ minLength: 1, default: 'local' }),
    cwd: Type.Optional(Type.String({ description: 'relative to the working directory of the session; default: that directory' })),
    shell: Type.Optional(Type.String({ minLength: 1, description: "default: the user's shell" })),
    cols: Type.Integer({ minimum: 1, maximum: 10_000, default: 80 }),
    rows: Type.Integer({ minimum: 1, maximum: 10_000, default: 24 })
  }),
  data: TerminalObject,
  errors: [SessionMissing, SessionBusy, RuntimeMissing, RuntimeUnavailable, PathOutside]
})

export const readTerminal = defineRoute({
  method: 'GET',
  path: `${path}/{terminal_id}`,
  summary: 'Read a terminal',
  params: Type.Object(one),
  data: TerminalObject,
  errors: [SessionMissing, TerminalMissing]
})

export const closeTerminal = defineRoute({
  method: 'POST',
  path: `${path}/{terminal_id}:close`,
  summary: 'End a terminal and everything that runs in it',
  params: Type.Object(one),
  data: Type.Object({ closed: Type.Boolean() }),
  errors: [SessionMissing, TerminalMissing]
})

const errors = [SessionMissing, TerminalMissing]

export const attach = defineFrame({
  type: 'terminal_attach',
  summary: 'Get the output of a terminal: first what is kept of it behind `since_seq`, then what comes',
  payload: Type.Object({ ...one, since_seq: Type.Integer({ minimum: 0, default: 0, description: 'output up to here is known' }) }),
  ack: Type.Object({ attached: Type.Literal(true), replayed: Type.Integer({ minimum: 0, description: 'frames that were sent first' }) }),
  errors
})
export const input = defineFrame({
  type: 'terminal_input',
  summary: 'Type into a terminal',
  payload: Type.Object({ ...one, data: Type.String({ description: 'raw keystrokes' }) }),
  ack: Type.Object({ accepted: Type.Literal(true) }),
  errors: [...errors, RuntimeUnavailable]
})
export const resize = defineFrame({
  type: 'terminal_resize',
  summary: 'Change the size of a terminal',
  payload: Type.Object({ ...one, cols: Size, rows: Size }),
  ack: Type.Object({ resized: Type.Literal(true) }),
  errors
})
export const detach = defineFrame({
  type: 'terminal_detach',
  summary: 'Get no more output; the terminal goes on',
  payload: Type.Object(one),
  ack: Type.Object({ detached: Type.Literal(true) }),
  errors
})
export const close = defineFrame({
  type: 'terminal_close',
  summary: 'End a terminal and everything that runs in it',
  payload: Type.Object(one),
  ack: Type.Object({ closed: Type.Literal(true) }),
  errors
})

const whose = { session_id: Type.String(), terminal_id: Type.String() }

export const output = defineOutFrame({
  type: 'terminal_output',
  fields: { seq: Type.Integer({ minimum: 1 }), ...whose },
  summary: 'To attached connections; `seq` of the frame counts the output of one terminal from 1',
  payload: Type.Object({ data: Type.String() })
})
export const exit = defineOutFrame({
  type: 'terminal_exit',
  fields: whose,
  summary: 'To attached connections, once',
  payload: Type.Object({ exit_code: Type.Optional(nullable(Type.Integer())) })
})
