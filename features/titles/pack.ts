/** Wires generated titles. */
import { AppError, definePack, defineSlot, milliseconds, Type, underFirstAbort } from '../../kernel/index.ts'
import { Config, experimentalSection } from '../config/index.ts'
import { Histories } from '../history/index.ts'
import { createUpstream, HostIdentity, LlmLogins, nonBlank, OutboundHosts, providersSection } from '../llm/index.ts'
import { MANAGED_PROVIDER } from '../providers/index.ts'
import { type Session, Sessions } from '../sessions/index.ts'
import { generateTitle, type TitleSource, TitleUnavailable } from './contract.ts'
import { materialOf } from './material.ts'
import { askForTitle } from './service.ts'

/** The title that is being made, for everybody who wants it meanwhile. */
const RunSlot = defineSlot('title-run', (_session: Session): { running?: Promise<string> | undefined } => ({}))

const refused = (why: string) => new AppError(TitleUnavailable, { message: `no title can be generated: ${why}` })

export default definePack({
  name: 'titles',
  version: '1.0.0',
  description: 'Titles of sessions, made by the managed provider',
  area: 'Sessions',
  needs: { sessions: Sessions, histories: Histories, identity: HostIdentity },
  optional: { config: Config },
  config: Type.Object({
    timeout_ms: milliseconds({
      minimum: 1,
      default: 8000,
      description: 'how long the managed provider may take, renewing the login included'
    })
  }),
  setup(ctx, { sessions, histories, identity, config }) {
    ctx.slot(RunSlot)
    const upstream = createUpstream()
    ctx.own(() => upstream.close())
    const logins = ctx.collect(LlmLogins)
    const service = { upstream, logins: () => logins.items(), identity }
    const provider = () => {
      const base_url = nonBlank(config()?.get(providersSection)[MANAGED_PROVIDER]?.base_url)
      return base_url === undefined ? undefined : { id: MANAGED_PROVIDER, base_url }
    }
    ctx.contribute(OutboundHosts, {
      pack: ctx.name,
      hosts: () => {
        const url = provider()?.base_url
        return url === undefined ? [] : [{ url, why: 'titles of sessions', when: 'POST title/generate' }]
      }
    })

    const generate = async (session: Session, source: TitleSource, force: boolean): Promise<string> => {
      const managed = provider()
      if (config()?.get(experimentalSection).auto_session_title !== true) throw refused('the flag auto_session_title is off')
      if (!managed) throw refused('there is no managed login')
      if (!force && session.state.title_kind !== 'replaceable') throw refused('the session has a title')
      const title = await underFirstAbort([ctx.signal, AbortSignal.timeout(ctx.config.timeout_ms)], async signal => {
        const main = session.agent('main')
        const chat = main && (await materialOf(await histories.of(main), source, signal).catch(() => undefined)) // too long to read in time
        if (chat === undefined) throw refused('there is nothing to make it of yet')
        return await askForTitle(service, managed, chat, signal)
      })
      if (!force && session.state.title_kind !== 'replaceable') throw refused('the session has got a title meanwhile')
      await session.entitle(title, 'generated')
      return title
    }

    ctx.route(generateTitle, async ({ params: { session_id }, body }) => {
      const { force = false, source = 'user_prompts' } = body ?? {}
      const session = await sessions.load(session_id)
      session.assertWritable()
      const letGo = session.keep()
      try {
        const run = session.get(RunSlot)
        if (force) return { title: await generate(session, source, force) }
        run.running ??= generate(session, source, force).finally(() => {
          run.running = undefined
        })
        return { title: await run.running }
      } finally {
        letGo()
      }
    })
  }
})
