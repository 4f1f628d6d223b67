/** Logins at MCP servers that one server of the home gets or gives up, at another one that is linked with it. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { beginAuth, completeAuth, resetAuth } from '../../../features/mcp-v2/index.ts'
import { kernels, newSession } from '../peers/kernels.ts'
import { browse, guarded } from './authorization.ts'

const timeout = 60_000

test('servers of sessions at another server connect with a login that was made here, and want one when it was reset', {
  timeout
}, async t => {
  const site = await guarded(t)
  const { home, servers, cwd } = await kernels(t, [])
  await writeFile(join(home, 'mcp.json'), JSON.stringify({ mcpServers: { site: { url: site.url } } }))
  const [here, there] = [servers[0]!, servers[1]!]
  const id = await newSession(there, cwd)
  const socket = await there.connect()
  await socket.request('subscribe', { session_ids: [id], cursors: { [id]: { seq: 0 } } })
  const status = (wanted: string) =>
    socket.next(({ type, payload }) => type === 'mcp.server.status' && (payload.server as { status: string }).status === wanted)
  const body = { source: 'global' as const, name: 'site' }
  await status('needs-auth')

  const { data } = await here.call(beginAuth, { body })
  await browse(data.authorizationUrl ?? '')
  assert.equal((await here.call(completeAuth, { body: { flowId: data.flowId ?? '' } })).code, 0)
  await status('connected')

  assert.equal((await here.call(resetAuth, { body })).code, 0)
  await status('needs-auth')
})
