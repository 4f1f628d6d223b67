/** What `svc-code doctor` looks at without a server: home, disk, port and configuration. */
import { existsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { tokenPath } from '../../kernel/access/token.ts'
import { defaultPort } from '../../kernel/environment.ts'
import { readRegularFile } from '../../kernel/home.ts'
import { shellWord } from '../../kernel/index.ts'
import { listInstances } from '../instances/index.ts'
import { readDeployment } from './deployment.ts'
import type { FlagValues } from './flags.ts'
import { homeProblem } from './home-access.ts'
import { homeWarnings, openMode } from './home-warnings.ts'

export interface Check {
  readonly subject: string
  readonly state: 'ok' | 'warning' | 'failed'
  readonly text: string
}

/** Below the first a server may stop in the middle of a session, below the second it soon will. Bytes. */
const littleSpace = 1024 ** 3
const noSpace = 100 * 1024 ** 2

export const ok = (subject: string, text: string): Check => ({ subject, state: 'ok', text })
export const warning = (subject: string, text: string): Check => ({ subject, state: 'warning', text })
export const failed = (subject: string, text: string): Check => ({ subject, state: 'failed', text })

export async function homeChecks(home: string): Promise<Check[]> {
  const problem = homeProblem(home)
  if (problem !== undefined) return [failed('home', problem)]
  if (!existsSync(home)) return [ok('home', `${home} is not there yet: the first start makes it`)]
  const exposed = [...homeWarnings(home), ...tokenWarning(home)]
  return [
    ok('home', home),
    ...(exposed.length === 0 ? [ok('permissions', 'home, configuration and token are open to their owner only')] : []),
    ...exposed.map(text => warning('permissions', text)),
    await disk(home)
  ]
}

/** A server does not start with such a token. */
function tokenWarning(home: string): string[] {
  const path = tokenPath(home)
  return openMode(path) === undefined
    ? []
    : [`the token ${path} can be read by other users, and no server starts with it; run: chmod 600 ${shellWord(path)}`]
}

async function disk(home: string): Promise<Check> {
  const { bavail, bsize } = await statfs(home)
  const free = bavail * bsize
  const text = `${(free / 1024 ** 3).toFixed(1)} GiB are free`
  return free < noSpace ? failed('disk', text) : free < littleSpace ? warning('disk', text) : ok('disk', text)
}

export async function portChecks(home: string): Promise<Check[]> {
  const running = await listInstances(home)
  if (running.length === 0) return [await freePort()]
  const { silence, silentServers } = await import('./servers.ts')
  return [
    ok('port', `a server of this home listens on ${running.map(one => one.port).join(', ')}`),
    ...(await silentServers(home)).map(one => failed('server', silence(one)))
  ]
}

async function freePort(): Promise<Check> {
  const free = await new Promise<boolean>(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(defaultPort, '127.0.0.1', () => server.close(() => resolve(true)))
  })
  return free
    ? ok('port', `${defaultPort} is free`)
    : warning('port', `another program has ${defaultPort}: a start takes the next free one`)
}

/** Whether the file can be read at all, with line and column; what it says is looked at by the packs. */
export async function fileCheck(flags: FlagValues, env: NodeJS.ProcessEnv, home: string): Promise<Check> {
  const file = join(home, 'config.toml')
  if (!existsSync(file)) return ok('configuration', `there is no ${file}; the defaults hold`)
  const { parse, TomlError } = await import('smol-toml')
  try {
    parse(readRegularFile(file))
    await readDeployment(flags, env)
    return ok('configuration', file)
  } catch (error) {
    if (!(error instanceof TomlError)) return failed('configuration', (error as Error).message)
    return failed('configuration', `${file}:${error.line}:${error.column}: ${error.message.split('\n', 1)[0]}`)
  }
}
