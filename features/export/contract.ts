/** Wire of the export of a session (contract 2, POST export). */
import { defineRoute, named, Type } from '../../kernel/index.ts'
import { SessionMissing } from '../sessions/index.ts'

/** Bytes of UTF-8 that a client's log may have. */
export const webLogBytes = 256 * 1024

export const exportSession = defineRoute({
  method: 'POST',
  path: '/api/v1/sessions/{session_id}/export',
  summary: 'The files of a session as a zip archive, without secrets',
  operationId: 'exportSession',
  params: Type.Object({ session_id: Type.String() }),
  body: named(
    'ExportRequest',
    Type.Object(
      {
        web_log: Type.Optional(Type.String({ description: `log of the client, at most ${webLogBytes} bytes of UTF-8` })),
        desktop: Type.Optional(Type.Boolean({ description: 'with the log of the desktop host, where there is one; default false' }))
      },
      { additionalProperties: false, examples: [{}] }
    )
  ),
  bodyLimit: 2 * 1024 * 1024,
  data: Type.Unknown(),
  binary: { types: ['application/zip'], statuses: [200] },
  errors: [SessionMissing]
})
