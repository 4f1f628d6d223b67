/** `svc-code open`: the web page of the running server, in the browser of this desktop. */
import { spawn } from 'node:child_process'
import type { Client } from '../../client/index.ts'
import { readToken } from '../../kernel/access/token.ts'
import { CommandError } from './command-error.ts'
import type { Runner } from './commands.ts'
import { homeOf } from './deployment.ts'
import { neededServer } from './servers.ts'

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler']
}

export const open: Runner = async ({ flags }, { env, out, err }) => {
  const home = homeOf(flags, env)
  const { url, client } = await neededServer(home)
  const served = await servesPage(client).finally(() => client.close())
  if (!served)
    throw new CommandError(
      `the server at ${url} has no web page: a pack brings one (svc-code --pack ./page.mjs; docs/web-pages.md has that file). Without one there is svc-code run, and svc-code token for programs`
    )
  const address = `${url}/#token=${readToken(home) ?? ''}`
  if (await launched(address, env)) out(`opened ${url}\n`)
  else {
    err('there is no browser to open it in; the address carries the token:\n')
    out(`${address}\n`)
  }
  return 0
}

/** Whether a pack serves `/`, by the document of the server, which leaves out what only stands in for such a page. True when there is no document. */
async function servesPage({ rest }: Client): Promise<boolean> {
  const { data } = await rest.GET('/openapi.json')
  const { paths } = (data ?? {}) as { paths?: Readonly<Record<string, { get?: unknown }>> }
  return paths === undefined || Object.entries(paths).some(([path, item]) => /^\/(?:\{[^/]+\})?$/.test(path) && item.get !== undefined)
}

/** False when there is no desktop or its opener fails at once. */
function launched(address: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const desktop = process.platform in openers || env.DISPLAY !== undefined || env.WAYLAND_DISPLAY !== undefined
  if (!desktop) return Promise.resolve(false)
  const [program = 'xdg-open', ...args] = openers[process.platform] ?? ['xdg-open']
  return new Promise(resolve => {
    const child = spawn(program, [...args, address], { detached: true, stdio: 'ignore', env })
    const waited = setTimeout(() => resolve(true), 2_000) // it runs: the browser itself
    const end = (opened: boolean) => {
      clearTimeout(waited)
      resolve(opened)
    }
    child.once('error', () => end(false))
    child.once('exit', code => end(code === 0))
    child.unref()
  })
}
