/** Global search (contract 3, Global search). */
import { defineRoute, named, oneOf, Type } from '../../kernel/index.ts'

const Role = oneOf(['user', 'assistant', 'title'])
const Instant = Type.Integer({ description: 'epoch milliseconds' })

const SearchHitObject = named(
  'SearchHit',
  Type.Object({
    session_id: Type.String(),
    workspace_id: Type.String(),
    session_title: Type.String(),
    agent_id: Type.String({ description: 'empty for titles' }),
    role: Role,
    snippet: Type.String({ description: '80 characters on both sides of the first match, `…` where the text goes on' }),
    time: Instant,
    turn: Type.Optional(Type.Integer({ minimum: 0 })),
    step_id: Type.Optional(Type.String({ description: '`t<turn>.<step>`, of assistant replies' })),
    score: Type.Number({ description: 'orders hits of one query; 0 in literal mode' })
  })
)

const IndexState = named(
  'SearchIndexState',
  Type.Object({
    state: oneOf(['building', 'ready', 'readonly'], { description: 'readonly: another server of this home keeps the index' }),
    indexed_sessions: Type.Integer({ minimum: 0 }),
    total_sessions: Type.Integer({ minimum: 0 }),
    documents: Type.Integer({ minimum: 0 }),
    stale: Type.Optional(Type.Boolean({ description: 'not everything that is on disk was searched' })),
    degraded: Type.Optional(Type.String({ description: 'the last failure to read something' }))
  })
)

export const searchAll = defineRoute({
  method: 'POST',
  path: '/api/v1/search',
  summary: 'Search user messages, assistant replies and session titles',
  operationId: 'search',
  body: Type.Object({
    query: Type.String({ minLength: 1, maxLength: 10_000 }),
    mode: oneOf(['terms', 'literal'], { default: 'terms', description: 'literal: exact substring, newest first' }),
    op: oneOf(['AND', 'OR'], { default: 'AND', description: 'terms mode only' }),
    container: Type.Optional(
      Type.Object({ session_id: Type.Optional(Type.String({ minLength: 1 })), agent_id: Type.Optional(Type.String({ minLength: 1 })) })
    ),
    role: Type.Optional(Role),
    start_time: Type.Optional(Type.Integer({ description: 'epoch milliseconds, inclusive' })),
    end_time: Type.Optional(Type.Integer({ description: 'epoch milliseconds, inclusive' })),
    sort: oneOf(['score', 'time_desc', 'time_asc'], { default: 'score', description: 'terms mode only' }),
    page_size: Type.Integer({ minimum: 1, maximum: 50, default: 20 }),
    page_token: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 }))
  }),
  data: Type.Object({
    items: Type.Array(SearchHitObject),
    has_more: Type.Boolean(),
    page_token: Type.Optional(Type.String()),
    index_state: IndexState,
    source: oneOf(['index', 'live'], { description: 'live: the session of the container, which is loaded here, as it is now' }),
    incomplete: Type.Optional(
      oneOf(['candidate_cap', 'postings_budget', 'deadline'], { description: 'a budget was spent before everything was seen' })
    )
  })
})
