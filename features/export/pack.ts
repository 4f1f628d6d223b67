/** Wires the export of sessions. */
import { AppError, binary, definePack, invalid, KernelInfo } from '../../kernel/index.ts'
import { Config, ConfigSections } from '../config/index.ts'
import { SessionMissing, Sessions } from '../sessions/index.ts'
import { exportSession, webLogBytes } from './contract.ts'
import { secretsOf, secretsOnDisk } from './secrets.ts'
import { exportOf, fileNameOf } from './session-export.ts'

export default definePack({
  name: 'export',
  version: '1.0.0',
  description: 'A session as a zip archive',
  area: 'Sessions',
  needs: { sessions: Sessions, info: KernelInfo },
  optional: { config: Config },
  setup(ctx, { sessions, info, config }) {
    const sections = ctx.collect(ConfigSections)
    const secrets = async () => {
      const configured = sections.items().flatMap(section => secretsOf(config()?.get(section), section.name))
      return [...configured, ...(await secretsOnDisk(ctx.home))]
    }

    ctx.route(exportSession, async ({ params: { session_id }, body: { web_log, desktop = false } }) => {
      if (web_log !== undefined && Buffer.byteLength(web_log) > webLogBytes) {
        throw invalid([{ path: 'body.web_log', message: `at most ${webLogBytes} bytes of UTF-8` }])
      }
      const live = sessions.loaded(session_id)
      if (live?.writable) await live.update(state => state) // what waits to be saved
      await ctx.streams.flushed(session_id)
      const state = await sessions.state(session_id)
      if (!state) throw new AppError(SessionMissing)
      const bytes = await exportOf(
        { home: ctx.home, version: info.version, now: ctx.now(), secrets: await secrets() },
        { state, dir: sessions.dir(state) },
        { web_log, desktop }
      )
      return binary({
        stream: bytes,
        type: 'application/zip',
        filename: fileNameOf(session_id),
        disposition: 'attachment',
        headers: { 'cache-control': 'no-store' }
      })
    })
  }
})
