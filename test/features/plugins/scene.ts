/** A server with plugins, directories of plugins, archives of them, and a host that serves both. */
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import yazl from 'yazl'
import config from '../../../features/config/pack.ts'
import interactions from '../../../features/interactions/pack.ts'
import permissions from '../../../features/permissions/pack.ts'
import { installPlugin, listPlugins, type PluginSummary } from '../../../features/plugins/index.ts'
import plugins from '../../../features/plugins/pack.ts'
import skills from '../../../features/skills/pack.ts'
import tools from '../../../features/tools/pack.ts'
import shell from '../../../features/tools-shell/pack.ts'
import userHooks from '../../../features/user-hooks/pack.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { type ScriptedLlm, scriptedLlm } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { type Started, type StartOptions, startAgent } from '../agent/start.ts'

export type Files = Readonly<Record<string, string>>

export const manifest = (name: string, more: Readonly<Record<string, unknown>> = {}): Files => ({
  'svc.plugin.json': JSON.stringify({ name, version: '1.0.0', ...more })
})

/** Writes files into a fresh directory. */
export async function directory(files: Files): Promise<string> {
  const dir = await freshDir()
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, name)), { recursive: true })
    await writeFile(join(dir, name), text)
  }
  return dir
}

/** An archive; `change` gets the library's object before it is closed. */
export async function archive(files: Files, comment = '', change: (zip: yazl.ZipFile) => void = () => {}): Promise<Buffer> {
  const zip = new yazl.ZipFile()
  for (const [name, text] of Object.entries(files)) zip.addBuffer(Buffer.from(text), name)
  change(zip)
  zip.end({ comment, forceZip64Format: false })
  const file = join(await freshDir(), 'a.zip')
  await pipeline(zip.outputStream, createWriteStream(file))
  return await readFile(file)
}

export interface Host {
  readonly url: string
  /** Paths that were asked for. */
  readonly asked: string[]
  /** What paths answer: a body, or a redirect. */
  readonly serve: Record<
    string,
    Buffer | string | { readonly location: string } | ((request: IncomingMessage, reply: ServerResponse) => void)
  >
}

export async function host(t: TestContextLike): Promise<Host> {
  const serve: Host['serve'] = {}
  const asked: string[] = []
  const server = createServer((request, reply) => {
    asked.push(request.url ?? '')
    const answer = serve[request.url ?? '']
    if (answer === undefined) reply.writeHead(404).end()
    else if (typeof answer === 'function') answer(request, reply)
    else if (typeof answer === 'string' || Buffer.isBuffer(answer)) reply.writeHead(200).end(answer)
    else reply.writeHead(302, answer).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, serve }
}

export interface Scene extends Started {
  install(source: string): Promise<{ code: number; msg: string; data: PluginSummary; details?: unknown }>
  list(): Promise<PluginSummary[]>
}

export async function start(t: TestContextLike, llm: ScriptedLlm = scriptedLlm('ok'), options: StartOptions = {}): Promise<Scene> {
  const scene = await startAgent(t, llm, {
    ...options,
    packs: [config, tools, shell, interactions, permissions, userHooks, skills, plugins, ...(options.packs ?? [])]
  })
  return {
    ...scene,
    install: source => scene.call(installPlugin, { body: { source } }),
    list: async () => (await scene.call(listPlugins, {})).data.plugins
  }
}
