/** A server with configuration, models and providers, on a home that may hold a configuration already. */
import { readFile, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import config from '../../../features/config/pack.ts'
import { readToml } from '../../../features/config/toml.ts'
import { type LlmLogin, LlmLogins } from '../../../features/llm/index.ts'
import llm from '../../../features/llm/pack.ts'
import providers from '../../../features/providers/pack.ts'
import { definePack, type Pack } from '../../../kernel/index.ts'
import { startTestKernel, type TestKernel } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'

export const packs: readonly Pack[] = [config, llm, providers]

export interface Scene extends TestKernel {
  /** Text of the configuration file. */
  toml(): Promise<string>
  /** Its content. */
  file(): Promise<Record<string, unknown>>
}

export async function start(
  t: TestContext,
  {
    toml,
    home,
    more = [],
    last = [],
    now,
    logged
  }: {
    toml?: string
    home?: string
    /** Packs before and behind the usual ones. */
    more?: readonly Pack[]
    last?: readonly Pack[]
    now?: () => Date
    /** Gets the lines of the log from warnings on. */
    logged?: string[]
  } = {}
): Promise<Scene> {
  const place = home ?? (await freshDir())
  const path = join(place, 'config.toml')
  if (toml !== undefined) await writeFile(path, toml)
  const kernel = await startTestKernel(t, {
    packs: [...more, ...packs, ...last],
    home: place,
    ...(now && { now }),
    ...(logged && { log: { level: 'warn', to: { write: line => void logged.push(line) } } })
  })
  const text = () => readFile(path, 'utf8')
  return { ...kernel, toml: text, file: async () => readToml(await text()) }
}

/** A pack that logs providers in. */
export const logins = (login: Partial<LlmLogin>) =>
  definePack({
    name: 'logins',
    setup(ctx) {
      ctx.contribute(LlmLogins, { status: () => 'unauthenticated', accessToken: async () => undefined, ...login })
    }
  })

/** Nothing is refreshed unless a test asks for it. */
export const quiet = '[model_catalog]\nrefresh_on_start = false\nrefresh_interval_ms = 0\n'

/** A configuration whose provider `one` is listed at `<url>/v1/models`. */
export const discovering = (url: string, more = '', type = 'svc') => `${quiet}
[providers.one]
type = "${type}"
base_url = "${url}/v1"
api_key = "sk-one"
model_source = "discover"
${more}
`

export interface Asked {
  readonly path: string
  readonly headers: IncomingHttpHeaders
}

/** An HTTP server in place of a provider or a registry. Answers what `reply` says: JSON, a text as it is, or a status. */
export async function listServer(t: TestContext, reply: (asked: Asked) => unknown) {
  const asked: Asked[] = []
  const server = createServer(async (req, res) => {
    const one = { path: req.url ?? '', headers: req.headers }
    asked.push(one)
    const answer = await reply(one)
    if (typeof answer === 'number') res.writeHead(answer).end('no')
    else res.end(typeof answer === 'string' ? answer : JSON.stringify(answer))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

/** A body of `POST /providers` with what a test does not care about filled in. */
export const body = (id: string, more: object = {}) => ({
  id,
  type: 'compat_chat' as const,
  models: [{ model: 'small', max_context_size: 1000 }],
  ...more
})

/** Paths of the details of a failure. */
export const paths = (answer: { readonly details?: readonly { readonly path: string }[] }) => answer.details?.map(({ path }) => path)
