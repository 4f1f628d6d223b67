/** `svc-code status`, `instances` and `stop`: the running servers of a home. */
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError, unwrap } from '../../client/index.ts'
import { type Instance, listInstances } from '../instances/index.ts'
import { CommandError } from './command-error.ts'
import type { Runner } from './commands.ts'
import { homeOf } from './deployment.ts'
import { json, shortTime, table } from './io.ts'
import { UsageError } from './options.ts'
import { reach, urlOf } from './servers.ts'

export const instances: Runner = async ({ flags }, { env, out }) => {
  const home = homeOf(flags, env)
  const running = await listInstances(home)
  if (flags.json) out(json(running.map(one => ({ ...one, url: urlOf(one) }))))
  else if (running.length === 0) out(`no server is running on ${home}\n`)
  else out(table(running.map(row)))
  return 0
}

function row(one: Instance): string[] {
  const since = `since ${new Date(one.started_at).toISOString()}`
  return [one.server_id, urlOf(one), `pid ${one.pid}`, since, one.host_version ?? '']
}

export const status: Runner = async ({ flags }, { env, out }) => {
  const home = homeOf(flags, env)
  const all = await Promise.all((await listInstances(home)).map(one => statusOf(home, one)))
  if (flags.json) out(json({ home, servers: all }))
  else if (all.length === 0) out(`no server runs on ${home}; start one with: svc-code\n`)
  else out(all.map(shown).join('\n'))
  return all.length > 0 ? 0 : 1
}

interface Status {
  readonly url: string
  readonly pid: number
  readonly version: string | undefined
  readonly started_at: string
  /** Why the rest is missing. */
  readonly error?: string
  readonly packs?: { readonly active: number; readonly not_active: readonly string[] }
  readonly model?: { readonly ready: boolean; readonly default_model: string | null; readonly warnings: readonly string[] }
  readonly sessions?: { readonly total: number; readonly busy: number; readonly waiting_for_you: number }
}

async function statusOf(home: string, instance: Instance): Promise<Status> {
  const { url, client } = reach(home, instance)
  const { rest } = client
  const base = {
    url,
    pid: instance.pid,
    version: instance.host_version,
    started_at: new Date(instance.started_at).toISOString()
  }
  const signal = AbortSignal.timeout(5_000)
  try {
    const meta = await unwrap(rest.GET('/api/v1/meta', { signal }))
    const auth = await unwrap(rest.GET('/api/v1/auth', { signal })).catch(absent)
    const list = await unwrap(rest.GET('/api/v1/sessions', { signal })).catch(absent)
    const odd = meta.features.filter(({ state }) => state !== 'Active').map(({ name }) => name)
    return {
      ...base,
      packs: { active: meta.features.length - odd.length, not_active: odd },
      model: auth && { ready: auth.ready, default_model: auth.default_model, warnings: auth.warnings ?? [] },
      sessions: list && {
        total: list.items.length,
        busy: list.items.filter(one => one.busy).length,
        waiting_for_you: list.items.filter(one => one.pending_interaction !== 'none').length
      }
    }
  } catch (error) {
    return { ...base, error: plain(error) }
  }
}

/** A route whose pack is off. */
function absent(error: unknown): undefined {
  if (error instanceof ApiError && error.code === 40400) return undefined
  throw error
}

function plain(error: unknown): string {
  if (error instanceof ApiError) return `it refuses the token: ${error.message}`
  return `it does not answer: ${error instanceof Error ? error.message : String(error)}`
}

function shown({ url, pid, version, started_at, error, packs, model, sessions }: Status): string {
  const rows: [string, string][] = [['server', `${url}  pid ${pid}  ${version ?? ''}  since ${shortTime(started_at)}`]]
  if (error !== undefined) rows.push(['', error])
  if (model)
    rows.push([
      'model',
      model.ready
        ? `${model.default_model}${model.warnings.length === 0 ? ' is ready' : ''}`
        : 'none is ready: svc-code login, or svc-code models'
    ])
  for (const text of model?.warnings ?? []) rows.push(['', text])
  if (packs) rows.push(['packs', `${packs.active} active${packs.not_active.length > 0 ? `, not: ${packs.not_active.join(', ')}` : ''}`])
  if (sessions) rows.push(['sessions', `${sessions.total}, ${sessions.busy} busy, ${sessions.waiting_for_you} waiting for an answer`])
  return table(rows)
}

function terminate(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error // else it has ended by itself
  }
}

/** How long a server may take to end before the command gives up, ms. */
const stopMs = 30_000

export const stop: Runner = async ({ words: [port], flags }, { env, out }) => {
  if (port !== undefined && !/^\d{1,5}$/.test(port))
    throw new UsageError(`'${port}' is no port: give a number, such as 58627; svc-code instances lists the servers with theirs.`)
  const home = homeOf(flags, env)
  const running = await listInstances(home)
  const chosen = port === undefined ? running : running.filter(one => String(one.port) === port)
  if (running.length === 0) {
    out(`no server runs on ${home}\n`)
    return 0
  }
  const ports = running.map(one => one.port).join(', ')
  if (chosen.length === 0) throw new CommandError(`no server of ${home} listens on port ${port}; there are: ${ports}`)
  if (chosen.length > 1 && !flags.all) throw new CommandError(`several servers run on ${home}; name a port (${ports}) or --all`)
  for (const one of chosen) {
    await end(home, one)
    out(`stopped the server on ${urlOf(one)}\n`)
  }
  return 0
}

/** Asks over REST; a server without that route, or one that does not answer, gets the signal that asks for the same. */
async function end(home: string, instance: Instance): Promise<void> {
  const { rest } = reach(home, instance).client
  const asked = await unwrap(rest.POST('/api/v1/shutdown', { signal: AbortSignal.timeout(5_000) })).catch(() => undefined)
  const gone = async () => !(await listInstances(home)).some(one => one.server_id === instance.server_id)
  if (!asked && !(await gone())) terminate(instance.pid)
  for (const until = Date.now() + stopMs; Date.now() < until; await delay(50)) if (await gone()) return
  throw new CommandError(`the server with pid ${instance.pid} has not ended within ${stopMs / 1000} s; kill -9 ${instance.pid} ends it`)
}
