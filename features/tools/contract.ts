/** Wire shapes of the tools pack (contract 2, Tool and `GET /api/v1/tools`). */
import { defineRoute, named, oneOf, Type } from '../../kernel/index.ts'

/** One tool as clients see it. */
export const ToolEntry = named(
  'Tool',
  Type.Object({
    name: Type.String(),
    description: Type.String(),
    input_schema: Type.Null({ description: 'always null' }),
    source: oneOf(['builtin', 'skill', 'mcp']),
    mcp_server_id: Type.Optional(Type.String({ description: 'the part between `mcp__` and the next `__` of the name' })),
    active: Type.Optional(Type.Boolean({ description: 'verdict of the tool policies for the main agent' }))
  })
)

/** Tools of a live session's main agent; an unknown or unloaded session has none (contract 2, Skills, tools, MCP). */
export const listTools = defineRoute({
  method: 'GET',
  path: '/api/v1/tools',
  summary: 'List tools',
  description: 'Without `session_id`: the most recently created session. Empty when that session is not live.',
  query: Type.Object({ session_id: Type.Optional(Type.String({ minLength: 1 })) }),
  data: Type.Object({ tools: Type.Array(ToolEntry) })
})

/** Domain `tools` of the user's configuration: which tools exist at all. */
export const toolsSection = {
  name: 'tools',
  schema: Type.Object({
    enabled: Type.Optional(Type.Array(Type.String(), { description: 'empty or absent: no limit; `mcp__` entries are globs' })),
    disabled: Type.Optional(Type.Array(Type.String()))
  }),
  default: {}
}
