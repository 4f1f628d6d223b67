/** Two ends of a loopback connection. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export async function socketPair(t: { after(fn: () => unknown): void }): Promise<readonly [Socket, Socket]> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const one = connect((server.address() as { port: number }).port, '127.0.0.1').pause()
  const [other] = (await once(server, 'connection')) as [Socket]
  server.close()
  for (const socket of [one, other]) {
    socket.on('error', () => undefined)
    t.after(() => socket.destroy())
  }
  return [one, other]
}
