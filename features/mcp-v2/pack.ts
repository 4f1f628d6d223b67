/** Wires the management of MCP servers: the user's file, trying, inspecting, and logins at remote servers. */
import { definePack, invalid, milliseconds, Type } from '../../kernel/index.ts'
import {
  checkConfig,
  createRemoteFetch,
  type Entry,
  Mcp,
  McpLogins,
  type RemoteConfig,
  type RemoteLogin,
  type ServerConfig
} from '../mcp/index.ts'
import { Peers, PeerTopics } from '../peers/index.ts'
import { assertWritable, catalog, isShared, located, managed, sharedText } from './catalog.ts'
import {
  addManaged,
  beginAuth,
  cancelAuth,
  completeAuth,
  deleteManaged,
  inspectServers,
  listManaged,
  OauthFailed,
  readAuthStatuses,
  readManaged,
  resetAuth,
  testServer,
  updateManaged
} from './contract.ts'
import { CredentialBook, credentialStore, idOf, isCandidate } from './credentials.ts'
import { Flows } from './flows.ts'
import { inspection, statuses, tryServer } from './inspect.ts'
import { changeServers, missing, withOther, without, withServer } from './user-file.ts'

const answerBytes = 1024 * 1024
const topic = 'mcp-logins'

export default definePack({
  name: 'mcp-v2',
  description: 'Managing MCP servers: configuration, tests, logins',
  area: 'Tools',
  needs: { mcp: Mcp },
  optional: { peers: Peers },
  errors: [OauthFailed],
  config: Type.Object({
    flow_idle_ms: milliseconds({
      minimum: 1,
      default: 900_000,
      description: 'a login of which nobody asks any more ends'
    })
  }),
  setup(ctx, { mcp, peers }) {
    const { fetch, close } = createRemoteFetch({ bytes: answerBytes, elsewhere: true })
    ctx.own(close)
    const dir = `${ctx.home}/credentials/mcp`
    const book = new CredentialBook({ store: ctx.store(credentialStore, { dir: 'credentials/mcp' }), dir, fetch, now: ctx.now })
    const loginChanged = ({ name, config }: Entry) => {
      const { url } = config as RemoteConfig
      mcp.credentialsChanged({ name, url })
      peers()?.tell(topic, { name, url })
    }
    const flows = new Flows({
      book,
      fetch,
      idleMs: ctx.config.flow_idle_ms,
      newId: ctx.newId,
      // One of a project, whose directory is not known here, is taken as it was. So is one whose file is just damaged.
      async isThere(entry) {
        if (!entry.mutable && !entry.plugin) return true
        const entries = await mcp.entries().catch(() => [entry])
        return entries.some(each => each.config.transport !== 'stdio' && idOf(each) === idOf(entry))
      },
      authorized: loginChanged
    })
    // Logins are on disk, for all servers of the home. One that is linked only now may have got some without a word.
    ctx.contribute(PeerTopics, {
      topic,
      told: login => mcp.credentialsChanged(login as RemoteLogin),
      joined: () => mcp.credentialsChanged()
    })
    ctx.own(() => flows.close())
    ctx.tap(ctx.hooks.closing, () => flows.close())
    ctx.contribute(McpLogins, {
      tokens: entry => (isCandidate(entry) ? book.tokens(entry) : undefined),
      async login(entry, told, signal) {
        const begun = await flows.begin(entry)
        if (begun.status === 'already-authorized') return loginChanged(entry)
        const expiresAt = new Date(ctx.now().getTime() + ctx.config.flow_idle_ms).toISOString()
        told({ authorizationUrl: begun.authorizationUrl, expiresAt })
        await flows.complete(begun.flowId, ctx.config.flow_idle_ms, signal).finally(() => flows.cancel(begun.flowId))
      }
    })

    const checked = (given: object, root: string): ServerConfig => {
      const result = checkConfig(given, { root })
      if ('problems' in result) throw invalid([...result.problems])
      return result.config
    }
    const named = (name: string, field = 'body.name') => {
      const trimmed = name.trim()
      if (trimmed === '') throw invalid([{ path: field, message: 'must not be empty' }])
      // It names the server in paths of requests.
      if (trimmed.length > 500 || /^\.{1,2}$|[\p{Cc}\p{Surrogate}]/u.test(trimmed)) {
        throw invalid([{ path: field, message: 'must have at most 500 characters, none of them a control character, and not be dots' }])
      }
      return trimmed
    }
    const list = async (cwd: string | undefined) => (await catalog(mcp, cwd)).map(managed)
    const change = async (cwd: string | undefined, edit: Parameters<typeof changeServers>[1]) => {
      await changeServers(ctx.home, edit)
      mcp.changed()
      return await list(cwd)
    }
    const forLogin = async (cwd: string | undefined, locator: Parameters<typeof located>[1]): Promise<Entry> => {
      const entries = await catalog(mcp, cwd)
      const entry = located(entries, locator)
      const { config, name } = entry
      const refuse = (message: string) => invalid([{ path: 'body', message }])
      if (entry.problem !== undefined) throw refuse(`the configuration of ${name} cannot be used: ${entry.problem}`)
      if (config.transport === 'stdio') throw refuse(`${name} is no remote server: it has no login`)
      if (config.bearerTokenEnvVar !== undefined) throw refuse(`${name} takes its token from ${config.bearerTokenEnvVar}`)
      if (config.auth !== 'oauth' && Object.keys(config.headers ?? {}).length > 0) {
        throw refuse(`${name} has headers of its own: set auth to oauth if it has a login, too`)
      }
      if (isShared(entries, entry)) throw refuse(sharedText(name))
      return entry
    }

    ctx.route(listManaged, ({ query }) => list(query.cwd))
    ctx.route(readManaged, async ({ params, query }) => {
      const entry = (await catalog(mcp, query.cwd)).find(({ name }) => name === params.name)
      if (!entry) throw missing(params.name)
      return managed(entry)
    })
    ctx.route(addManaged, async ({ body: { name: given, ...fields }, query }) => {
      const name = named(given)
      const config = checked(fields, 'body')
      assertWritable(await catalog(mcp, query.cwd), name, 'body.name')
      return await change(query.cwd, servers => withServer(servers, name, config))
    })
    ctx.route(updateManaged, async ({ params: { name }, body, query }) => {
      const config = checked(body, 'body')
      assertWritable(await catalog(mcp, query.cwd), name, 'params.name')
      return await change(query.cwd, servers => withOther(servers, name, config))
    })
    ctx.route(deleteManaged, async ({ params: { name }, query }) => {
      assertWritable(await catalog(mcp, query.cwd), name, 'params.name')
      return await change(query.cwd, servers => without(servers, name))
    })

    ctx.route(testServer, async ({ body: { name, server, cwd }, signal }) => {
      if ((name === undefined) === (server === undefined)) {
        throw invalid([{ path: 'body', message: 'exactly one of name and server must be given' }])
      }
      const entries = await catalog(mcp, cwd, 'body.cwd')
      if (server) {
        const { name: given, ...fields } = server
        const config = checked(fields, 'body.server')
        const entry: Entry = { name: named(given, 'body.server.name'), config, source: 'global', origin: '', mutable: false }
        return await tryServer(entry, cwd, signal, mcp)
      }
      const found = entries.filter(each => each.name === name)
      const entry = found.find(({ config }) => config.enabled !== false) ?? found[0]
      if (!entry) throw missing(name ?? '')
      if (isShared(entries, entry)) throw invalid([{ path: 'body.name', message: sharedText(entry.name) }])
      return await tryServer(entry, cwd, signal, mcp)
    })
    const ports = { mcp, book, now: ctx.now }
    ctx.route(inspectServers, async ({ body: { targets, cwd }, signal }) => {
      const entries = await catalog(mcp, cwd, 'body.cwd')
      const wanted = targets?.map(locator => located(entries, locator)) ?? entries
      const found = await statuses(wanted, { all: entries, cwd, verify: true, signal }, ports)
      return wanted.map((entry, at) => inspection(entry, found[at] ?? { authStatus: 'unavailable' }))
    })
    ctx.route(readAuthStatuses, async ({ query: { cwd, verify }, signal }) => {
      const entries = await catalog(mcp, cwd)
      const found = await statuses(entries, { all: entries, cwd, verify: verify && verify === 'true', signal }, ports)
      return entries.map(({ name }, at) => ({ name, authStatus: found[at]?.authStatus ?? 'unavailable' }))
    })

    ctx.route(beginAuth, async ({ body, query }) => {
      const begun = await flows.begin(await forLogin(query.cwd, body))
      if (begun.status === 'already-authorized') mcp.credentialsChanged() // perhaps by a server of the home that told nobody
      return begun
    })
    ctx.route(completeAuth, async ({ body: { flowId, timeoutMs = ctx.config.flow_idle_ms }, signal }) => {
      await flows.complete(flowId, timeoutMs, signal)
      return null
    })
    ctx.route(cancelAuth, ({ body }) => {
      flows.cancel(body.flowId)
      return null
    })
    ctx.route(resetAuth, async ({ body, query }) => {
      const entry = located(await catalog(mcp, query.cwd), body)
      if (entry.config.transport === 'stdio')
        throw invalid([{ path: 'body', message: `${entry.name} is no remote server: it has no login` }])
      await book.forget(entry)
      loginChanged(entry)
      return null
    })
  }
})
