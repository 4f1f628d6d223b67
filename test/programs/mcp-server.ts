/** An MCP server over standard streams; the first argument says how it behaves, the second one names a file that gets its process id. */
import { appendFileSync } from 'node:fs'

const [mode = 'good', file = ''] = process.argv.slice(2)
if (file !== '') appendFileSync(file, `${process.pid}\n`)

/** Writes the same for as long as somebody reads. */
function writeForEver(piece: string): void {
  while (process.stdout.write(piece));
  process.stdout.once('drain', () => writeForEver(piece))
}

/** The library is nine tenths of the start, and only some behave as it says. */
async function serve(many = 0): Promise<void> {
  const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js')
  const { testMcpServer } = await import('../helpers/mcp-server.ts')
  await testMcpServer(mode, many).connect(new StdioServerTransport())
}

if (mode === 'silent') setInterval(() => {}, 1000)
else if (mode === 'dies') {
  process.stderr.write('no database\n')
  process.exitCode = 3
} else if (mode === 'endless') writeForEver('x'.repeat(64 * 1024))
else if (mode === 'flood') {
  const message = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } }
  writeForEver(`${JSON.stringify(message)}\n`.repeat(1000))
} else if (mode === 'strange') {
  process.stdout.write('hello\n{"jsonrpc":"2.0","id":4711,"result":{}}\n{"jsonrpc":"2.0","id":"none","error":{"code":1,"message":"x"}}\n')
  await serve()
} else await serve(mode === 'many' ? 10_000 : 0)
