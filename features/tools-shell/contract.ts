/** Parameters of the Bash tool, and the events of its commands (contract 3, WebSocket events). */
import { defineEvent, Type } from '../../kernel/index.ts'
import { ToolProgressUpdate } from '../agent/index.ts'

/** Seconds a command may run while its call waits. */
export const DEFAULT_TIMEOUT_S = 60
export const MAX_TIMEOUT_S = 300
/** Seconds a command may run in the background. */
const MAX_BACKGROUND_S = 86_400

export const bashParameters = Type.Object(
  {
    command: Type.String({ minLength: 1, description: 'The command line to run' }),
    cwd: Type.Optional(Type.String({ minLength: 1, description: 'Directory to run in; default: the working directory' })),
    timeout: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_BACKGROUND_S,
        description: `Seconds that the command may take; default ${DEFAULT_TIMEOUT_S}, at most ${MAX_TIMEOUT_S}, in the background ${MAX_BACKGROUND_S}`
      })
    ),
    description: Type.Optional(Type.String({ description: 'What the command does, in a few words; required in the background' })),
    run_in_background: Type.Optional(Type.Boolean({ description: 'Start it and go on at once; you get a message when it ends' })),
    disable_timeout: Type.Optional(Type.Boolean({ description: 'In the background only: no time limit' }))
  },
  { additionalProperties: false }
)

const command = {
  commandId: Type.String({ description: 'the tool call that runs it' }),
  taskId: Type.Optional(Type.String({ description: 'its task, where there are tasks' }))
}

export const shellStarted = defineEvent({
  type: 'shell.started',
  scope: 'session',
  durable: false,
  payload: Type.Object(command),
  summary: 'A command runs; its tool.call.started was sent before'
})
export const shellOutput = defineEvent({
  type: 'shell.output',
  scope: 'session',
  durable: false,
  payload: Type.Object({ ...command, update: ToolProgressUpdate }),
  summary: 'A piece of what a command prints, also in the background'
})
export const shellCompleted = defineEvent({
  type: 'shell.completed',
  scope: 'session',
  durable: false,
  payload: Type.Object({ ...command, isError: Type.Boolean() }),
  summary: 'A command is over for whose end its call waited; its tool.result follows. One in the background has task.terminated'
})
