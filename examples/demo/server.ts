/** Starts the full server as its own process, on its own home, with the demo model. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Client } from './client.ts'

export interface DemoServer {
  readonly url: string
  readonly client: Client
  /** Asks for a graceful shutdown and waits for the process to end. */
  stop(): Promise<void>
}

const main = fileURLToPath(new URL('../../bundle/main.js', import.meta.url))

export async function startServer(home: string): Promise<DemoServer> {
  const env = { ...process.env, SVC_CODE_HOME: home, SVC_CODE_CATALOG_URL: 'off' } // nobody outside is asked
  const child = spawn(process.execPath, [main, 'serve', '--port', '0', '--demo'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const text = await bannerOf(child)
  const url = /listening on (\S+)/.exec(text)?.[1]
  const token = /token {3}(\S+)/.exec(text)?.[1]
  if (!url || !token) throw new Error(`the server did not start: ${text}`)
  const client = new Client(url, token)
  return {
    url,
    client,
    async stop() {
      await client.call('POST', '/shutdown')
      await ended
    }
  }
}

/** Reads what the server prints until it has said how to stop it. */
async function bannerOf(child: ChildProcess): Promise<string> {
  let text = ''
  const stdout = child.stdout
  if (!stdout) return text
  stdout.setEncoding('utf8')
  for await (const chunk of stdout) {
    text += String(chunk)
    if (/^ {2}stop .*\n/m.test(text)) break
  }
  return text
}
