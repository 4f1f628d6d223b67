/** Sections of the user's configuration that permissions read (contract 1, `default_permission_mode`, `permission`). */
import { oneOf, Type } from '../../kernel/index.ts'

/** `Tool` or `Tool(argument)`; the tool part is a glob. */
const pattern = Type.String({ minLength: 1, pattern: '^[^()\\s]+(\\([\\s\\S]*\\))?$' })

const rule = Type.Object({
  decision: oneOf(['allow', 'deny', 'ask']),
  pattern,
  scope: Type.Optional(oneOf(['turn-override', 'session-runtime', 'project', 'user'], { description: 'default user' })),
  reason: Type.Optional(Type.String())
})

/** Shorthand: `match` (or `pattern`) is the argument part. */
const short = Type.Object({
  tool: Type.String({ minLength: 1, pattern: '^[^()\\s]+$' }),
  match: Type.Optional(Type.String()),
  pattern: Type.Optional(Type.String()),
  reason: Type.Optional(Type.String())
})

export const permissionSection = {
  name: 'permission',
  schema: Type.Object({
    rules: Type.Optional(Type.Array(rule)),
    allow: Type.Optional(Type.Array(short)),
    deny: Type.Optional(Type.Array(short)),
    ask: Type.Optional(Type.Array(short))
  }),
  default: {}
}

export const defaultModeSection = {
  name: 'default_permission_mode',
  schema: oneOf(['manual', 'auto', 'yolo']),
  default: 'manual' as const
}
