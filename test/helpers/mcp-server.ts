/** An MCP server of the official library with tools for tests, for any transport. */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { CallToolRequestSchema, type CallToolResult, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { png } from './png.ts'

const text = (value: string): CallToolResult => ({ content: [{ type: 'text', text: value }] })

type Handler = (args: Readonly<Record<string, unknown>>, server: Server) => CallToolResult | Promise<CallToolResult>

/** `name`: said by its tool `echo`. `many`: so many further tools. */
export function testMcpServer(name: string, many = 0): Server {
  const server = new Server({ name: 'test', version: '1.0.0' }, { capabilities: { tools: { listChanged: true } } })
  const tools: Record<string, readonly [description: string, handler: Handler, schema?: object]> = {
    echo: [
      'Says it again',
      args => text(`${name} says ${args.text}`),
      { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }
    ],
    env: ['Variables', () => text(JSON.stringify({ ...process.env, cwd: process.cwd() }))],
    fail: ['Fails', () => ({ ...text('it is broken'), isError: true })],
    hang: ['Never answers', () => new Promise(() => {})],
    die: ['Ends the server', () => process.exit(1)],
    large: ['A long text', () => text('y'.repeat(150_000))],
    picture: [
      'An image',
      ({ width }) => {
        const data = typeof width === 'number' ? png(width, 300).toString('base64') : 'iVBORw0KGgo='
        return { content: [{ type: 'image', data, mimeType: 'image/png' }] }
      }
    ],
    grow: [
      'Brings another tool',
      async (_args, own) => {
        tools.grown = ['New', () => text('new')]
        await own.sendToolListChanged()
        return text('grown')
      }
    ],
    ask: [
      'Asks the user',
      async (_args, own) => {
        const properties = {
          color: { type: 'string', title: 'Color', enum: ['red', 'blue'] },
          sure: { type: 'boolean' },
          count: { type: 'integer', minimum: 1 },
          note: { type: 'string', description: 'what to remember' }
        } as const
        const requestedSchema = { type: 'object', properties, required: ['color', 'count'] } as const
        return text(JSON.stringify(await own.elicitInput({ message: 'Which one?', requestedSchema } as never)))
      }
    ]
  }
  for (let n = 0; n < many; n++) tools[`t${n}`] = ['One of many', () => text('')]
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: Object.entries(tools).map(([tool, [description, , schema]]) => ({
      name: tool,
      description,
      inputSchema: { type: 'object' as const, ...schema }
    }))
  }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    const tool = tools[params.name]
    if (!tool) throw new Error(`no tool ${params.name}`)
    return await tool[1](params.arguments ?? {}, server)
  })
  return server
}
