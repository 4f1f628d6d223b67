/** Events that follow from records of an agent: told by its engine, or in its place while it is being opened. */
import type { PackContext } from '../../kernel/index.ts'
import { RecordEvents } from '../history/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { AgentDeps } from './deps.ts'
import { type AgentRecordEvent, eventsOf } from './events.ts'
import { tellLeft } from './recovery.ts'

export function tellRecords(
  ctx: Pick<PackContext, 'contribute'>,
  { engines, goesOn, emit }: Pick<AgentDeps, 'engines' | 'goesOn' | 'emit'>
): void {
  const left = (agent: AgentHost, event: AgentRecordEvent, known: boolean) =>
    tellLeft(agent, event, known, emit(agent), goesOn.get(agent)?.() ?? false)
  ctx.contribute(RecordEvents, {
    events: eventsOf,
    // Only what `events` made comes back.
    tell(agent, event) {
      const engine = engines.get(agent)
      if (engine) engine.tell(event as AgentRecordEvent)
      else left(agent, event as AgentRecordEvent, false)
    },
    known: (agent, event) => left(agent, event as AgentRecordEvent, true)
  })
}
