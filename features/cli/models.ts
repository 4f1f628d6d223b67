/** `svc-code models`: the configured models, and which of them is the default. */
import { ApiError, unwrap } from '../../client/index.ts'
import { CommandError } from './command-error.ts'
import type { Runner } from './commands.ts'
import { demoModel } from './deployment.ts'
import { json, table } from './io.ts'
import { withServer } from './servers.ts'

export const models: Runner = ({ verb, words, flags }, io) =>
  withServer(flags, io, async ({ client: { rest } }) => {
    if (verb === 'use') {
      // Stored, it would stand in the way of a start without that option, and of the default that a login sets.
      if (words[0] === demoModel)
        throw new CommandError(
          `${demoModel} is there only while a server runs with --demo, so it is not stored; without another default it is used by itself`
        )
      const path = { model_id: words[0] ?? '' }
      const { default_model } = await unwrap(rest.POST('/api/v1/models/{model_id}:set_default', { params: { path } })).catch(
        (error: unknown) => {
          if (!(error instanceof ApiError) || error.code !== 40413) throw error
          throw new CommandError(`${error.message}; svc-code models lists those that are configured`)
        }
      )
      io.out(`the default model is ${default_model}\n`)
      return 0
    }
    const { items } = await unwrap(rest.GET('/api/v1/models'))
    const { default_model, ready } = await unwrap(rest.GET('/api/v1/auth'))
    if (flags.json) io.out(json({ default_model, ready, items }))
    else if (items.length === 0) io.out('no model is configured; svc-code login, or a provider in config.toml, brings some\n')
    else {
      const rows = items.map(({ model, provider, display_name, max_context_size, capabilities }) => [
        `${model === default_model ? '*' : ' '} ${model}`,
        provider,
        String(max_context_size),
        (capabilities ?? []).join(' '),
        display_name ?? ''
      ])
      io.out(table([['  alias', 'provider', 'context', 'capabilities', 'name'], ...rows]))
    }
    return 0
  })
