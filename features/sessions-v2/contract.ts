/** Wire shapes, routes and errors of the v2 session list and of its batches (contract 3, v2 session list). */
import { defineRoute, errorSpec, named, nullable, oneOf, type Static, Type } from '../../kernel/index.ts'

export const PageTokenInvalid = errorSpec('page_token_invalid', 40922, 'the page token does not fit these conditions')

export const Status = named('SessionActivity', oneOf(['running', 'approval', 'question', 'failed', 'idle']))
export type Status = Static<typeof Status>

const Moment = Type.Integer({ description: 'epoch milliseconds', examples: [1_767_225_600_000] })
const Place = named('SessionPlace', Type.Object({ id: Type.String(), cwd: nullable(Type.String()) }))

/** Of the directory in which a session works; all null outside of a repository. */
export const GitFacts = named(
  'SessionGit',
  Type.Object({
    branch: nullable(Type.String({ description: 'null when no branch is checked out' })),
    pull_request: nullable(
      Type.Object(
        { number: Type.Integer(), state: oneOf(['open', 'closed', 'merged']), url: Type.String() },
        { description: 'draft: open' }
      )
    )
  })
)
export type GitFacts = Static<typeof GitFacts>

/** Contract 3, v2 session item. */
export const SessionItem = named(
  'SessionItem',
  Type.Object({
    id: Type.String(),
    workspace: Place,
    meta: Type.Object({
      title: nullable(Type.String()),
      last_prompt: nullable(Type.String()),
      created_at: Moment,
      updated_at: Moment,
      archived: Type.Boolean(),
      archived_at: nullable(Moment)
    }),
    activity: Type.Object({ status: Status }),
    git: Type.Optional(GitFacts)
  })
)
export type SessionItem = Static<typeof SessionItem>

/** An item under `fields=id,archived`. */
export const SessionMark = named('SessionMark', Type.Object({ id: Type.String(), archived: Type.Boolean() }))
export type SessionMark = Static<typeof SessionMark>

const Items = Type.Array(Type.Union([SessionItem, SessionMark]))
const next = {
  total: Type.Integer({ description: 'of the filtered set, all pages' }),
  has_more: Type.Boolean(),
  next_page_token: nullable(Type.String())
}
const Group = named('SessionGroup', Type.Object({ workspace: Place, sessions: Items, total: Type.Integer() }))
const FlatPage = named('SessionItemPage', Type.Object({ items: Items, ...next }))
const GroupPage = named('SessionGroupPage', Type.Object({ groups: Type.Array(Group), ...next }))

export const sorts = ['meta.updated_at_desc', 'meta.updated_at_asc', 'meta.created_at_desc'] as const
export type Sort = (typeof sorts)[number]
/** A page of marks may be larger than one of items. */
export const maxItems = 100
export const maxMarks = 10_000

export const listSessionItems = defineRoute({
  method: 'GET',
  path: '/api/v2/sessions',
  summary: 'List sessions, flat or by workspace, with filters, sorts and page tokens',
  operationId: 'listSessionItems',
  query: Type.Object({
    'workspace.id': Type.Optional(Type.Array(Type.String(), { description: 'any of these; unknown ones match nothing' })),
    'activity.status': Type.Optional(Type.Array(Status)),
    'meta.updated_after': Type.Optional(Type.Integer({ description: 'epoch milliseconds, inclusive' })),
    'meta.updated_before': Type.Optional(Type.Integer({ description: 'epoch milliseconds, inclusive' })),
    'meta.archived': oneOf(['true', 'false', 'all'], { default: 'false' }),
    'meta.has_prompt': Type.Optional(oneOf(['true', 'false'])),
    view: oneOf(['flat', 'by_workspace'], { default: 'flat' }),
    'group.page_size': Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: maxMarks,
        description: `by_workspace only; default 5, at most ${maxItems} without the projection`
      })
    ),
    sort: oneOf(sorts, { default: 'meta.updated_at_desc' }),
    include: Type.Optional(Type.String({ description: '`git`', examples: ['git'] })),
    fields: Type.Optional(Type.String({ description: '`id,archived`', examples: ['id,archived'] })),
    page_size: Type.Optional(
      Type.Integer({ minimum: 1, maximum: maxMarks, description: `default 50, at most ${maxItems} without the projection` })
    ),
    page_token: Type.Optional(Type.String()),
    page: Type.Optional(Type.Integer({ minimum: 1, description: 'number of a page; excludes page_token' }))
  }),
  data: Type.Union([FlatPage, GroupPage]),
  errors: [PageTokenInvalid]
})
export type ListQuery = Static<(typeof listSessionItems)['query'] & object>

/** Ids of one batch, duplicates not counted. */
export const maxBatch = 5000
const Ids = named(
  'SessionIds',
  Type.Object({ ids: Type.Array(Type.String(), { minItems: 1, description: `at most ${maxBatch} different ones` }) })
)
const Results = named(
  'SessionBatch',
  Type.Object({
    results: Type.Array(
      Type.Union([
        Type.Object({ id: Type.String(), ok: Type.Literal(true) }),
        Type.Object({ id: Type.String(), ok: Type.Literal(false), error: Type.Object({ code: Type.Integer(), message: Type.String() }) })
      ]),
      { description: 'in the order in which each id came first' }
    ),
    succeeded: Type.Integer(),
    failed: Type.Integer()
  })
)
export type BatchResults = Static<typeof Results>

export const archiveSessions = defineRoute({
  method: 'POST',
  path: '/api/v2/sessions:archive',
  summary: 'Archive many sessions; each answers for itself',
  operationId: 'archiveSessions',
  body: Ids,
  data: Results
})

export const restoreSessions = defineRoute({
  method: 'POST',
  path: '/api/v2/sessions:restore',
  summary: 'Un-archive many sessions without loading them; each answers for itself',
  operationId: 'restoreSessions',
  body: Ids,
  data: Results
})
