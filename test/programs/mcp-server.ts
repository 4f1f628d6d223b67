/** An MCP server over standard streams; the first argument says how it behaves, the second one names a file that gets its process id. */
import { appendFileSync } from 'node:fs'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { testMcpServer } from '../helpers/mcp-server.ts'

const [mode = 'good', file = ''] = process.argv.slice(2)
if (file !== '') appendFileSync(file, `${process.pid}\n`)

/** Writes the same for as long as somebody reads. */
function writeForEver(piece: string): void {
  while (process.stdout.write(piece));
  process.stdout.once('drain', () => writeForEver(piece))
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
  await testMcpServer(mode).connect(new StdioServerTransport())
} else await testMcpServer(mode, mode === 'many' ? 10_000 : 0).connect(new StdioServerTransport())
