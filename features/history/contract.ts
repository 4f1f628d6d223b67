/** The journal of an agent on disk. */
import { defineStore, type LogStore, Type } from '../../kernel/index.ts'

/** Records follow this shape since version 1.0; since 1.1 with marks of what was told; unknown types are kept and skipped. */
export const protocolVersion = '1.1'

/** The one log of the store. */
export const logId = 'wire'

/** `agents/<id>/wire.jsonl`: the first record is `metadata { protocol_version, created_at }`. */
export const wireStore = defineStore({
  name: 'wire',
  kind: 'log',
  value: Type.Object({ type: Type.String(), time: Type.Optional(Type.Number({ description: 'ms' })) }, { additionalProperties: true })
})

/** The journals of the agents in one place. */
export type WireLog = LogStore<{ type: string; time?: number }>
