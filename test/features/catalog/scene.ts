/** A server with the catalog pack, and an HTTP server in place of a directory or a registry. */
import { readFile, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import catalog from '../../../features/catalog/pack.ts'
import { readToml } from '../../../features/config/toml.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'
import { packs, type Scene } from '../providers/scene.ts'

export interface Upstream {
  readonly url: string
  readonly asked: { readonly path: string; readonly headers: IncomingHttpHeaders }[]
  /** JSON, raw text or bytes, a status, `silent` for none at all, or `stalled` for a head without a body. */
  reply: unknown
  /** Resolves with the next request, or at once when so many came already. */
  requests(count: number): Promise<void>
  /** Answers everybody who waits because of `silent`. */
  release(): void
}

export const silent = Symbol('silent')
export const stalled = Symbol('stalled')

export async function upstream(t: TestContext, reply: unknown): Promise<Upstream> {
  const asked: Upstream['asked'] = []
  const waiting: (() => void)[] = []
  let wake: () => void = () => undefined
  const server = createServer((req, res) => {
    const answer = () => {
      const { reply } = self
      if (reply === silent) waiting.push(answer)
      else if (reply === stalled) res.writeHead(200).write('{')
      else if (typeof reply === 'number') res.writeHead(reply, { location: '/elsewhere' }).end('no')
      else res.end(typeof reply === 'string' || Buffer.isBuffer(reply) ? reply : JSON.stringify(reply))
    }
    asked.push({ path: req.url ?? '', headers: req.headers })
    wake()
    answer()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const self: Upstream = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    reply,
    async requests(count) {
      while (asked.length < count) {
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
    },
    release() {
      for (const answer of waiting.splice(0)) answer()
    }
  }
  return self
}

export interface CatalogScene {
  /** Value of SVC_CODE_CATALOG_URL; absent: not set. */
  readonly directory?: string
  /** Text of the configuration file. */
  readonly toml?: string
  /** Deployment options of the pack. */
  readonly options?: Readonly<Record<string, unknown>>
  readonly now?: () => Date
  readonly offline?: boolean
}

/** Starts the packs on a fresh home; without a directory the built-in snapshot is used. */
export async function startCatalog(
  t: TestContext,
  { directory, toml, options = {}, now, offline = false }: CatalogScene = {}
): Promise<Scene> {
  if (directory === undefined) delete process.env.SVC_CODE_CATALOG_URL
  else process.env.SVC_CODE_CATALOG_URL = directory
  const home = await freshDir()
  const path = join(home, 'config.toml')
  if (toml !== undefined) await writeFile(path, toml)
  const kernel = await startTestKernel(t, {
    packs: [catalog, ...packs],
    home,
    offline,
    config: { catalog: options },
    ...(now && { now })
  })
  const text = () => readFile(path, 'utf8')
  return { ...kernel, toml: text, file: async () => readToml(await text()) }
}
