/** Sessions of a fresh home behind the v2 list, with a clock that moves a second with every look. */
import { createSession, Sessions } from '../../../features/sessions/index.ts'
import sessions from '../../../features/sessions/pack.ts'
import { type ListQuery, listSessionItems } from '../../../features/sessions-v2/index.ts'
import list from '../../../features/sessions-v2/pack.ts'
import workspaces from '../../../features/workspaces/pack.ts'
import { definePack } from '../../../kernel/index.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'

export async function scene(
  t: Parameters<typeof startTestKernel>[0],
  options: { home?: string; config?: Record<string, Record<string, unknown>>; now?: () => Date } = {}
) {
  let service: Sessions | undefined
  const probe = definePack({
    name: 'probe',
    needs: { sessions: Sessions },
    setup(_ctx, needs) {
      service = needs.sessions
    }
  })
  let at = Date.parse('2026-01-01T00:00:00Z')
  const clock = () => {
    at += 1000
    return new Date(at)
  }
  const config = { 'sessions-v2': { pull_request_program: '' }, ...options.config }
  const started = await startTestKernel(t, { packs: [workspaces, sessions, list, probe], now: clock, ...options, config })
  const { call } = started
  return {
    ...started,
    get sessions(): Sessions {
      return service as Sessions
    },
    directory: () => freshDir(),
    make: async (cwd: string, title?: string) =>
      (await call(createSession, { body: { metadata: { cwd }, ...(title === undefined ? {} : { title }) } })).data.id,
    /** Query fields as they stand in a URL. */
    query: (query: Readonly<Record<string, unknown>>) => call(listSessionItems, { query: query as unknown as ListQuery })
  }
}

/** Those of a page that is not grouped. */
export const idsOf = (data: unknown): string[] => (data as { items: { id: string }[] }).items.map(({ id }) => id)
