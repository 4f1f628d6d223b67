/** The full server on a fresh home, seen through the configuration routes and the file itself. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'smol-toml'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { type RestClient, startTestKernel, type TestContextLike, type TestKernel, type TestKernelOptions } from '../../kernel/testing.ts'
import { freshDir } from './temp.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
export type JsonObject = Record<string, any>

export interface Answer {
  readonly code: number
  readonly msg: string
  readonly data: JsonObject
  readonly details?: readonly { readonly path: string; readonly message: string }[]
}

export interface SettingsClient {
  /** The configuration object. */
  get(): Promise<JsonObject>
  /** Posts a patch, or a text as it is, whatever comes of it. */
  post(body: unknown): Promise<Answer>
  /** Posts a patch that must be accepted; answers the configuration. */
  patch(body: JsonObject): Promise<JsonObject>
  /** Posts what must be refused; answers the paths of the details. */
  refused(body: unknown): Promise<string[]>
}

/** The two routes, untyped: tests send what no typed client would. */
export function settingsOf(rest: RestClient): SettingsClient {
  const post = async (body: unknown): Promise<Answer> => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const answer = await rest.raw('POST', '/api/v1/config', { headers: { 'content-type': 'application/json' }, body: text })
    return JSON.parse(answer.body.toString('utf8')) as Answer
  }
  return {
    post,
    get: async () => (await rest.json('GET', '/api/v1/config')).data as JsonObject,
    async patch(body) {
      const { code, msg, data } = await post(body)
      assert.equal(code, 0, msg)
      return data
    },
    async refused(body) {
      const { code, msg, data, details = [] } = await post(body)
      assert.equal(code, 40001, msg)
      assert.equal(data, null)
      const [first] = details
      assert.ok(first, 'a 40001 has details')
      assert.equal(msg, first.path === '' ? first.message : `${first.path}: ${first.message}`)
      return details.map(({ path }) => path)
    }
  }
}

export interface ConfigScene extends SettingsClient {
  readonly server: TestKernel
  readonly home: string
  /** `<home>/config.toml`. */
  readonly path: string
  /** The text of the file now. */
  read(): Promise<string>
  /** Its content. */
  table(): Promise<JsonObject>
  write(toml: string): Promise<void>
}

/** Starts every default pack over `toml`; undefined: there is no file. */
export async function configScene(t: TestContextLike, toml?: string, options: Partial<TestKernelOptions> = {}): Promise<ConfigScene> {
  const home = await freshDir()
  const path = join(home, 'config.toml')
  if (toml !== undefined) await writeFile(path, toml)
  const server = await startTestKernel(t, { packs: await loadDefaultPacks(), home, ...options })
  const read = () => readFile(path, 'utf8')
  const table = async () => JSON.parse(JSON.stringify(parse(await read()))) as JsonObject
  return { ...settingsOf(server.rest), server, home, path, read, table, write: text => writeFile(path, text) }
}
