/** What the journal of an agent does not know and a transcript shows: which session it is in, and what the configuration says of its model. */
import type { Llm } from '../llm/index.ts'
import { inSession } from './interaction-view.ts'
import { withLimits } from './limits.ts'
import type { Source } from './source.ts'

/** As pages and baselines of this session have it. */
export function shownIn(session_id: string, entities: Source['entities'], llm: Llm | undefined): Source['entities'] {
  return {
    ...entities,
    interactions: entities.interactions.map(each => inSession(session_id, each)),
    meta: withLimits(entities.meta, llm)
  }
}
