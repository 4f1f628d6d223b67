/** Child processes of a benchmark: the full server on a fresh home, and the floor. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RestClient, SocketClient } from '../../kernel/testing.ts'

export interface Child {
  readonly url: string
  readonly pid: number
  /** Milliseconds from spawn to the listening line. */
  readonly ready_ms: number
  rss(): Promise<number>
  stop(): Promise<void>
}

export interface BenchServer extends Child {
  readonly token: string
  readonly rest: RestClient
  readonly workspace: string
  /** Where its home and its workspace are, and the home. */
  readonly place: string
  readonly home: string
  /** A new session in the workspace. */
  session(): Promise<string>
  /** A client that sees the events of a session. */
  subscribed(session: string): Promise<SocketClient>
  /** Largest event loop delay since the last call, ms. */
  loop(): Promise<number>
  /** What is in use after a garbage collection, heap and buffers, MB. */
  used(): Promise<number>
}

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export function startFloor(): Promise<Child> {
  return start([here('./floor.js')], {})
}

export interface ServerOptions {
  readonly upstream?: string
  /** False: without the measuring pack. */
  readonly bench?: boolean
  /** Files of further packs. */
  readonly packs?: readonly string[]
  /** That of a server before, which was told to keep it. Default: a fresh one. */
  readonly place?: string
  readonly keep?: boolean
  /** Window of the model in tokens; default a million. */
  readonly window?: number
  /** Further lines of config.toml. */
  readonly config?: string
}

/** The full server with all default packs. */
export async function startServer(options: ServerOptions = {}): Promise<BenchServer> {
  const place = options.place ?? (await mkdtemp(join(tmpdir(), 'svc-code-bench-')))
  const home = join(place, 'home')
  const workspace = join(place, 'project')
  await mkdir(home, { recursive: true, mode: 0o700 })
  await mkdir(workspace, { recursive: true })
  await writeFile(
    join(home, 'config.toml'),
    configuration(options.upstream ?? 'http://127.0.0.1:9999/v1', options.window ?? 1_000_000) + (options.config ?? '')
  )
  const packs = [...(options.bench === false ? [] : [here('./pack.js')]), ...(options.packs ?? [])]
  const child = await start([here('../../bundle/main.js'), '--port', '0', ...packs.flatMap(file => ['--pack', file])], {
    SVC_CODE_HOME: home,
    SVC_CODE_CATALOG_URL: 'off' // nobody outside is asked
  })
  const token = (await readFile(join(home, 'server.token'), 'utf8')).trim()
  const rest = new RestClient(child.url, token)
  return {
    ...child,
    token,
    rest,
    workspace,
    place,
    home,
    async session() {
      const answer = await rest.json('POST', '/api/v1/sessions', { metadata: { cwd: workspace } })
      return (answer.data as { id: string }).id
    },
    async subscribed(session) {
      const socket = await SocketClient.open(child.url, token)
      await socket.request('subscribe', { session_ids: [session] })
      return socket
    },
    async loop() {
      return ((await rest.json('GET', '/api/v1/bench/loop')).data as { max_ms: number }).max_ms
    },
    async used() {
      return ((await rest.json('GET', '/api/v1/bench/memory')).data as { used_mb: number }).used_mb
    },
    async stop() {
      rest.close()
      await child.stop()
      if (!options.keep) await rm(place, { recursive: true, force: true, maxRetries: 3 })
    }
  }
}

function configuration(upstream: string, window: number): string {
  return `default_model = "bench/m"
default_permission_mode = "yolo"
[providers.bench]
type = "compat_chat"
base_url = "${upstream}"
api_key = "bench"
[models."bench/m"]
provider = "bench"
model = "m"
max_context_size = ${window}
`
}

async function start(args: readonly string[], env: NodeJS.ProcessEnv): Promise<Child> {
  const began = performance.now()
  const child = spawn(process.execPath, [...args], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] })
  const url = await listening(child)
  const ready_ms = performance.now() - began
  const exited = new Promise<void>(resolve => child.once('exit', () => resolve()))
  const pid = child.pid ?? 0
  return {
    url,
    pid,
    ready_ms,
    async rss() {
      return Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
    },
    async stop() {
      child.kill('SIGTERM')
      await exited
    }
  }
}

function listening(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout?.on('data', chunk => {
      text += String(chunk)
      const url = /listening on (\S+)/.exec(text)?.[1]
      if (url) resolve(url)
    })
    child.once('exit', code => reject(new Error(`ended with ${code} before listening: ${text}`)))
  })
}
