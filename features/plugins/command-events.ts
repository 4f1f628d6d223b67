/** The event of a plugin's command that a user called; it follows from the prompt's record. */
import type { PackContext } from '../../kernel/index.ts'
import { coreRecord, RecordEvents, recordTypes } from '../history/index.ts'
import { commandActivated } from './contract.ts'

export function tellCommands(ctx: Pick<PackContext, 'contribute' | 'event'>): void {
  const emit = ctx.event(commandActivated)
  ctx.contribute(RecordEvents, {
    records: recordTypes('prompt.accepted'),
    events(given) {
      const record = coreRecord(given)
      if (record?.type !== 'prompt.accepted' || record.origin?.kind !== 'plugin_command') return []
      const { kind: _kind, ...payload } = record.origin
      return [{ type: commandActivated.type, payload, at: new Date(record.time ?? 0) }]
    },
    // Only what `events` made comes back.
    tell: (agent, { payload, at }) =>
      emit(payload as Parameters<typeof emit>[0], { session_id: agent.session.id, subject: agent.id, time: at })
  })
}
