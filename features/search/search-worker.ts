/** Worker: holds the index and answers searches. In its own thread, because reading and searching would hold up the event loop. */
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import type { BodyOf, DataOf } from '../../kernel/index.ts'
import type { searchAll } from './contract.ts'
import { conditionsOf, readToken, writeToken } from './page-token.ts'
import { filterOf, search } from './query.ts'
import type { Page } from './ranking.ts'
import { SessionIndex, type TouchedSession } from './session-index.ts'
import { snippetOf } from './snippet.ts'
import { normalise, queryTerms } from './tokens.ts'

/** How old a look at all sessions may be; it is repeated in the background when it is older than half of that. */
const freshMs = 800
/** How long a search waits for a first or a late look. */
const waitMs = 1000
const maxTerms = 32

export type SearchRequest = BodyOf<typeof searchAll>
export type SearchAnswer = DataOf<typeof searchAll>

export type ToSearcher =
  | {
      readonly kind: 'search'
      readonly id: number
      readonly request: SearchRequest
      /** The session of the container is live in this process. */
      readonly live: boolean
      /** Sessions that may have changed in this process. */
      readonly touched: readonly TouchedSession[]
    }
  | { readonly kind: 'writes'; readonly writes: boolean }

export type FromSearcher = { readonly id: number } & (
  | { readonly kind: 'answer'; readonly answer: SearchAnswer }
  | { readonly kind: 'refused'; readonly field: 'query' | 'page_token'; readonly message: string }
  | { readonly kind: 'failed'; readonly message: string }
)

class Refusal extends Error {
  readonly field: 'query' | 'page_token'

  constructor(field: 'query' | 'page_token', message: string) {
    super(message)
    this.field = field
  }
}

const index = new SessionIndex((workerData as { home: string }).home)

async function answer(request: SearchRequest, live: boolean, touched: readonly TouchedSession[]): Promise<SearchAnswer> {
  const { query, mode, op, container, role, start_time, end_time, sort, page_size: size, page_token } = request
  const terms = mode === 'terms' ? queryTerms(query) : []
  check(request, terms, live)
  const source = live ? 'live' : 'index'
  const ofTerms = mode === 'terms' ? [op, sort] : []
  const conditions = conditionsOf([query, mode, container, role, start_time, end_time, ofTerms, source])
  const token = page_token === undefined ? undefined : readToken(page_token)
  if (page_token !== undefined && token?.conditions !== conditions) throw new Refusal('page_token', 'is not of a page of this query')
  const stale = await refresh(live ? (container?.session_id ?? '') : undefined, touched)
  const building = !live && !index.built
  if (token && (building || token.generation !== index.generation)) throw new Refusal('page_token', 'the index was built anew')
  const { corpus } = index
  const end = token?.end ?? corpus.end
  const wanted = { text: query, mode, op, sort, fits: filterOf(request), size, end, after: token?.position }
  const nothing: Page = { hits: [], has_more: false }
  const page = building ? nothing : search(wanted, { corpus, textOf: document => index.textOf(document), terms })
  const needles = mode === 'terms' ? terms : [normalise(query)]
  const items = page.hits.map(({ document, score }) => {
    const { session_id, agent_id, role, time, turn, step } = document
    const { workspace_id = '', title = '' } = index.facts(session_id) ?? {}
    const step_id = turn === undefined || step === undefined ? undefined : `t${turn}.${step}`
    const snippet = snippetOf(index.textOf(document), mode, needles)
    return { session_id, workspace_id, session_title: title, agent_id, role, snippet, time, turn, step_id, score }
  })
  const { position, has_more, incomplete } = page
  const state = building ? 'building' : live || index.writes ? 'ready' : 'readonly'
  return {
    items,
    has_more,
    page_token: has_more && position ? writeToken({ conditions, generation: index.generation, end, position }) : undefined,
    index_state: {
      state,
      ...index.counts(live ? container?.session_id : undefined),
      stale: (!live && (building || stale)) || undefined,
      degraded: live ? undefined : index.degraded
    },
    source,
    incomplete
  }
}

function check({ query, mode }: SearchRequest, terms: readonly string[], live: boolean): void {
  if (mode === 'terms') {
    if (terms.length === 0) throw new Refusal('query', 'has no word that could be searched')
    if (terms.length > maxTerms) throw new Refusal('query', `has ${terms.length} terms, at most ${maxTerms} are searched`)
    return
  }
  const { length } = normalise(query)
  if (length < (live ? 1 : 2) || length > 1024) throw new Refusal('query', `must have ${live ? 1 : 2} to 1024 characters`)
}

/** Brings in what has changed; true when that was not all of it. */
async function refresh(live: string | undefined, touched: readonly TouchedSession[]): Promise<boolean> {
  if (live !== undefined) {
    await index.lookAt([touched.find(({ id }) => id === live) ?? { id: live }], true)
    return false
  }
  const age = performance.now() - index.lookedAt
  if (!index.built || age > freshMs) {
    const late = Symbol()
    const looked = index.look().then(() => index.lookAt(touched))
    return (await Promise.race([looked, delay(waitMs, late)])) === late
  }
  if (age > freshMs / 2) void index.look().catch(() => undefined) // shown as `degraded`, and tried again
  if (touched.length > 0) await Promise.race([index.lookAt(touched), delay(waitMs)])
  return false
}

const port = parentPort

port?.on('message', (message: ToSearcher) => {
  if (message.kind === 'writes') {
    index.writes = message.writes
    return
  }
  const { id, request, live, touched } = message
  answer(request, live, touched).then(
    found => port.postMessage({ id, kind: 'answer', answer: found } satisfies FromSearcher),
    error => {
      const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
      const told: FromSearcher =
        error instanceof Refusal ? { id, kind: 'refused', field: error.field, message: error.message } : { id, kind: 'failed', message }
      port.postMessage(told)
    }
  )
})
