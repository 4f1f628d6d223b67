/** Runs the command line as a user would: a child process with its own home. */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../../bundle/main.js', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly child: ChildProcess
  readonly url: string
  readonly token: string
  /** All it has printed so far. */
  printed(): string
  readonly ended: Promise<Ended>
}

function launch(args: readonly string[], env: NodeJS.ProcessEnv) {
  // No test asks the public model directory.
  const all = { SVC_CODE_CATALOG_URL: 'off', ...process.env, ...env }
  const child = spawn(process.execPath, [main, ...args], { env: all, stdio: ['ignore', 'pipe', 'pipe'] })
  let stdout = ''
  let stderr = ''
  const ended = new Promise<Ended>(resolve => child.once('close', code => resolve({ code, stdout, stderr })))
  child.stderr.on('data', chunk => {
    stderr += String(chunk)
  })
  const until = (pattern: RegExp) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (pattern.test(stdout)) resolve()
      }
      child.stdout.on('data', chunk => {
        stdout += String(chunk)
        look()
      })
      void ended.then(({ code }) => reject(new Error(`ended with ${code}: ${stderr}`)))
    })
  return { child, ended, until, printed: () => stdout }
}

/** Runs a command to its end. */
export function run(home: string, ...args: string[]): Promise<Ended> {
  return runWith({ SVC_CODE_HOME: home }, ...args)
}

/** As `run`, with variables beside those of this process. */
export async function runWith(env: NodeJS.ProcessEnv, ...args: string[]): Promise<Ended> {
  const { ended, until } = launch(args, env)
  until(/$^/).catch(() => undefined) // only collects the output
  return ended
}

/** Starts a server and waits until it has said how to stop it. Killed with the test. */
export function serve(t: { after(fn: () => unknown): void }, home: string, ...args: string[]): Promise<Running> {
  return serveWith(t, { SVC_CODE_HOME: home }, ...args)
}

/** As `serve`, with variables beside those of this process. */
export async function serveWith(t: { after(fn: () => unknown): void }, env: NodeJS.ProcessEnv, ...args: string[]): Promise<Running> {
  const { child, ended, until, printed } = launch(['serve', ...args], env)
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  await until(/^ {2}stop .*\n/m)
  const url = /is listening on (\S+)/.exec(printed())?.[1] ?? ''
  const token = /(?:token {3}|#token=)(\S+)/.exec(printed())?.[1] ?? ''
  return { child, url, token, printed, ended }
}
