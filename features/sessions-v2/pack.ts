/** Wires the v2 session list and its batches. */
import { AppError, aFewAtOnce, definePack, InternalError, invalid, milliseconds, Type } from '../../kernel/index.ts'
import { GitCache, pullRequests, type GitFacts as RepositoryFacts } from '../git/index.ts'
import { assertOutbound, OutboundHosts } from '../llm/index.ts'
import { type SessionState, Sessions } from '../sessions/index.ts'
import { Workspaces } from '../workspaces/index.ts'
import { type Conditions, conditionsOf, tokenOf } from './conditions.ts'
import { archiveSessions, type BatchResults, type GitFacts, listSessionItems, maxBatch, restoreSessions, type Status } from './contract.ts'
import { type Facts, filtered, flatPage, groupPage, momentOf, type Page, sortBy } from './list.ts'

/** Sessions of a batch that are changed at a time. */
const parallel = 16

export default definePack({
  name: 'sessions-v2',
  version: '1.0.0',
  description: 'The v2 session list (filters, sorts, groups, page tokens) and archiving in batches',
  area: 'Sessions',
  needs: { sessions: Sessions, workspaces: Workspaces },
  config: Type.Object({
    pull_request_program: Type.String({ default: 'gh', description: 'asked for pull requests (include=git); empty: nobody is' }),
    pull_request_ms: milliseconds({ minimum: 1, default: 5000, description: 'how long it may take' }),
    git_wait_ms: milliseconds({
      minimum: 0,
      default: 2000,
      description: 'how long a list waits for include=git; the next one shows the rest'
    })
  }),
  setup(ctx, { sessions, workspaces }) {
    const { pull_request_program: program } = ctx.config
    if (program !== '') {
      const when = 'GET /api/v2/sessions?include=git in a repository'
      ctx.contribute(OutboundHosts, {
        pack: 'sessions-v2',
        hosts: () => [{ url: pullRequests.href, why: `pull requests, by ${program}`, when }]
      })
    }
    const git = new GitCache({
      now: () => ctx.now().getTime(),
      program,
      allowed: () => assertOutbound(pullRequests),
      programMs: ctx.config.pull_request_ms,
      waitMs: ctx.config.git_wait_ms
    })

    const statusOf = ({ id, last_turn_reason }: SessionState): Status => {
      const work = sessions.work(id)
      if (work && work.pending_interaction !== 'none') return work.pending_interaction
      if (work?.busy) return 'running'
      return last_turn_reason === 'failed' ? 'failed' : 'idle'
    }

    /** Ids under which the root of a workspace was registered before, with the id under which it is listed. */
    const listedIds = async (): Promise<ReadonlyMap<string, string>> => {
      const ids = new Map<string, string>()
      for (const { id } of await workspaces.list()) for (const alias of await workspaces.aliases(id)) if (alias !== id) ids.set(alias, id)
      return ids
    }

    const show = (states: readonly SessionState[], { marks }: Conditions, facts: Facts, found?: ReadonlyMap<string, GitFacts>) =>
      states.map(state =>
        marks
          ? { id: state.id, archived: state.archived }
          : {
              id: state.id,
              workspace: { id: facts.workspaceOf(state), cwd: state.cwd },
              meta: {
                title: state.title === '' ? null : state.title,
                last_prompt: state.last_prompt ?? null,
                created_at: momentOf(state, 'meta.created_at_desc'),
                updated_at: momentOf(state, 'meta.updated_at_desc'),
                archived: state.archived,
                archived_at: state.archived && state.archived_at !== undefined ? Date.parse(state.archived_at) : null
              },
              activity: { status: facts.statusOf(state) },
              ...(found && { git: found.get(state.cwd) ?? { branch: null, pull_request: null } })
            }
      )
    const gitOf = (states: readonly SessionState[], { git: wanted }: Conditions) =>
      wanted
        ? git.of(states.map(state => state.cwd)).then(found => new Map([...found].map(([cwd, each]) => [cwd, withoutDraft(each)])))
        : undefined

    ctx.route(listSessionItems, async ({ query }) => {
      const { conditions, position } = conditionsOf(query)
      const ids = await listedIds()
      const facts: Facts = {
        statusOf,
        renamed: ids.size > 0,
        workspaceOf: ({ workspace_id }) => (ids.size === 0 ? workspace_id : (ids.get(workspace_id) ?? workspace_id))
      }
      const wanted = conditions.workspaces && { workspaces: conditions.workspaces.map(id => ids.get(id) ?? id) }
      const rows = filtered(sortBy(await sessions.list(), conditions.sort), { ...conditions, ...wanted }, facts)
      const endOf = ({ total, has_more, last }: Page<unknown>) => {
        const next = has_more && last && position.page === undefined ? tokenOf(conditions, last) : null
        return { total, has_more, next_page_token: next }
      }
      if (!conditions.grouped) {
        const page = flatPage(rows, conditions, position)
        return { items: show(page.rows, conditions, facts, await gitOf(page.rows, conditions)), ...endOf(page) }
      }
      const page = groupPage(rows, conditions, facts, position)
      const found = await gitOf(
        page.rows.flatMap(group => group.rows),
        conditions
      )
      const groups = page.rows.map(({ workspace_id, rows: shown, total }) => ({
        workspace: { id: workspace_id, cwd: shown[0]?.cwd ?? null },
        sessions: show(shown, conditions, facts, found),
        total
      }))
      return { groups, ...endOf(page) }
    })

    const batch = async (ids: readonly string[], change: (id: string) => Promise<unknown>): Promise<BatchResults> => {
      const unique = [...new Set(ids)]
      if (unique.length > maxBatch) throw invalid([{ path: 'body.ids', message: `at most ${maxBatch} different ids` }])
      const results: BatchResults['results'] = await aFewAtOnce(unique, parallel, id =>
        change(id).then(
          () => ({ id, ok: true as const }),
          (error: unknown) => {
            if (!AppError.is(error)) ctx.log.error({ err: error, session_id: id }, 'a session of a batch could not be changed')
            const { code, message } = AppError.is(error) ? { code: error.code, message: error.message } : InternalError
            return { id, ok: false as const, error: { code, message } }
          }
        )
      )
      const succeeded = results.filter(({ ok }) => ok).length
      return { results, succeeded, failed: results.length - succeeded }
    }
    ctx.route(archiveSessions, ({ body: { ids } }) => batch(ids, id => sessions.archive(id)))
    ctx.route(restoreSessions, ({ body: { ids } }) => batch(ids, id => sessions.restore(id)))
  }
})

/** A draft is open here. */
function withoutDraft({ branch, pull_request: request }: RepositoryFacts): GitFacts {
  return { branch, pull_request: request && { ...request, state: request.state === 'draft' ? 'open' : request.state } }
}
