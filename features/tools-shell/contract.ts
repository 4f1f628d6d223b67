/** Parameters of the Bash tool. */
import { Type } from '../../kernel/index.ts'

/** Seconds a command may run. */
export const DEFAULT_TIMEOUT_S = 60
export const MAX_TIMEOUT_S = 300

export const bashParameters = Type.Object(
  {
    command: Type.String({ minLength: 1, description: 'The command line to run' }),
    cwd: Type.Optional(Type.String({ minLength: 1, description: 'Directory to run in; default: the working directory' })),
    timeout: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_TIMEOUT_S,
        description: `Seconds before the command is killed; default ${DEFAULT_TIMEOUT_S}, at most ${MAX_TIMEOUT_S}`
      })
    ),
    description: Type.Optional(Type.String({ description: 'What the command does, in a few words' }))
  },
  { additionalProperties: false }
)
