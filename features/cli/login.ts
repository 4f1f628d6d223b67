/** `svc-code login`: the managed account by its device code, or a provider of the model directory by its key. */
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError, type Client, unwrap } from '../../client/index.ts'
import { CommandError } from './command-error.ts'
import type { Runner } from './commands.ts'
import type { Io } from './io.ts'
import { withServer } from './servers.ts'

export const login: Runner = ({ words: [provider], flags }, io) =>
  withServer(
    flags,
    io,
    async ({ client }) => {
      const chosen = provider ?? (io.interactive && !flags.key ? await chooseProvider(client, io) : undefined)
      if (chosen === undefined && flags.key) throw new CommandError('--key needs a provider: svc-code login <provider> --key')
      if (chosen === undefined) await account(client, io)
      else await keyOf(client, chosen, flags.model, io)
      return await readiness(client, io)
    },
    { outbound: true }
  )

/** Undefined: the managed account. */
async function chooseProvider({ rest }: Client, { ask }: Io): Promise<string | undefined> {
  const { items } = await unwrap(rest.GET('/api/v1/catalog/providers'))
  const known = items.flatMap(({ id, name, rejected }) => (rejected ? [] : [{ value: id, label: name, hint: id }]))
  const chosen = await ask.choose('Log in to', [{ value: '', label: 'the managed account', hint: 'in the browser' }, ...known])
  if (chosen === undefined) throw new CommandError('cancelled', 130)
  return chosen === '' ? undefined : chosen
}

async function account({ rest }: Client, { out, err, onInterrupt }: Io): Promise<void> {
  const started = await unwrap(rest.POST('/api/v1/oauth/login', { body: {} })).catch((error: unknown) => {
    if (!(error instanceof ApiError) || error.code !== 40001) throw error
    const missing = (error.details as { message: string }[] | undefined)?.map(({ message }) => message).join('; ')
    throw new CommandError(`${missing ?? error.message}\nto store the key of a provider instead: svc-code login <provider>`)
  })
  if (started.status === 'authenticated') return out('logged in already\n')
  err(`open ${started.verification_uri_complete}\nand confirm the code ${started.user_code}; waiting (Ctrl+C cancels)\n`)
  const stop = new AbortController()
  const off = onInterrupt(() => stop.abort())
  try {
    for (;;) {
      await delay(started.interval * 1000, undefined, { signal: stop.signal }).catch(() => undefined) // looked at below
      if (stop.signal.aborted) {
        await unwrap(rest.DELETE('/api/v1/oauth/login', {}))
        throw new CommandError('cancelled', 130)
      }
      const now = await unwrap(rest.GET('/api/v1/oauth/login', {}))
      if (now?.status === 'authenticated') return out('logged in\n')
      if (now?.status !== 'pending') throw new CommandError(`the login ended: ${now?.error_message ?? now?.status ?? 'nobody knows of it'}`)
    }
  } finally {
    off()
  }
}

async function keyOf({ rest }: Client, catalog_id: string, model: string | undefined, io: Io): Promise<void> {
  const api_key = (io.interactive ? await io.ask.secret(`API key of ${catalog_id}`) : await io.input()).trim()
  if (api_key === '') throw new CommandError('no key was given: nothing is stored')
  const { provider } = await unwrap(rest.POST('/api/v1/providers:import_catalog', { body: { catalog_id, api_key } })).catch(
    async (error: unknown) => {
      if (!(error instanceof ApiError) || error.code !== 40417) throw error
      const { items } = await unwrap(rest.GET('/api/v1/catalog/providers'))
      throw new CommandError(`no provider '${catalog_id}' in the model directory; it has ${items.map(({ id }) => id).join(', ')}`)
    }
  )
  io.out(`stored the key of ${provider.id}, with ${provider.models.length} models\n`)
  const wanted = model ?? ((await usableDefault(rest)) === undefined ? (provider.default_model ?? provider.models[0]) : undefined)
  if (wanted === undefined) return
  const path = { model_id: provider.models.includes(`${provider.id}/${wanted}`) ? `${provider.id}/${wanted}` : wanted }
  await unwrap(rest.POST('/api/v1/models/{model_id}:set_default', { params: { path } }))
}

async function readiness({ rest }: Client, { out }: Io): Promise<number> {
  const { ready } = await unwrap(rest.GET('/api/v1/auth'))
  const default_model = ready ? await usableDefault(rest) : undefined
  out(
    default_model !== undefined
      ? `ready: the default model is ${default_model}\n`
      : 'not ready yet: svc-code models use <alias> chooses a default model\n'
  )
  return default_model !== undefined ? 0 : 1
}

/** The default model, unless there is none of that name or it has no provider any more. */
async function usableDefault(rest: Client['rest']): Promise<string | undefined> {
  const { default_model } = await unwrap(rest.GET('/api/v1/auth'))
  const { items } = await unwrap(rest.GET('/api/v1/models'))
  return items.find(({ model, provider }) => model === default_model && provider !== '')?.model
}
