/** Wire shapes and routes of uploads (contract 3, File uploads). */
import { defineRoute, defineStore, errorSpec, milliseconds, named, PersistenceFailed, type Static, Time, Type } from '../../kernel/index.ts'

/** 40407: no such upload, or one that has expired. */
export const FileMissing = errorSpec('file_missing', 40407, 'file not found')
/** The routes of uploads answer with real statuses what others answer with 200. */
export const UploadMissing = { ...FileMissing, status: 404 }
export const UploadsFailed = { ...PersistenceFailed, status: 500 }

/** Contract 3, Uploaded file metadata. */
export const UploadObject = named(
  'UploadedFile',
  Type.Object({
    id: Type.String({ description: '`f_` and a ULID' }),
    name: Type.String(),
    media_type: Type.String({ description: 'content type of the upload' }),
    size: Type.Integer({ minimum: 0, description: 'bytes' }),
    created_at: Time,
    expires_at: Type.Optional(Time)
  })
)
export type UploadObject = Static<typeof UploadObject>

/** Below the home. */
export const factsDir = 'files/facts'
export const bytesDir = 'files/bytes'
/** `<id>.json`, or `expiring/<id>.json`: the upload exists while this does. A damaged one is a fault of the storage, and no upload that is missing. */
export const factsStore = defineStore({ name: 'facts', kind: 'document', value: UploadObject, keepDamaged: true })
/** `<id>` */
export const bytesStore = defineStore({ name: 'bytes', kind: 'blob', value: Type.Unknown() })

const params = Type.Object({ file_id: Type.String() })
const path = '/api/v1/files/{file_id}' as const

export const uploadFile = defineRoute({
  method: 'POST',
  path: '/api/v1/files',
  summary: 'Upload a file (multipart/form-data)',
  bodyType: 'stream',
  body: Type.Object({
    file: Type.String({
      contentMediaType: 'application/octet-stream',
      description: 'bytes; the first file part counts, whatever its name'
    }),
    name: Type.Optional(Type.String({ maxLength: 255, description: 'default: the name of the uploaded file' })),
    expires_in_sec: Type.Optional(Type.Number({ minimum: 0, description: 'seconds; default: never' }))
  }),
  data: UploadObject,
  errors: [UploadsFailed]
})

export const downloadFile = defineRoute({
  method: 'GET',
  path,
  summary: 'Bytes of an upload; single ranges',
  params,
  data: Type.Unknown(),
  binary: { types: ['*/*'], statuses: [200, 206] },
  errors: [UploadMissing, UploadsFailed]
})

export const deleteFile = defineRoute({
  method: 'DELETE',
  path,
  summary: 'Delete an upload',
  params,
  data: Type.Object({ deleted: Type.Literal(true) }),
  errors: [UploadMissing, UploadsFailed]
})

/** Deployment options. */
export const Options = Type.Object({
  max_bytes: Type.Integer({ minimum: 0, default: 0, description: 'largest upload in bytes; 0: no limit' }),
  sweep_ms: milliseconds({
    minimum: 10,
    default: 600_000,
    description: 'time between two removals of what has expired'
  })
})
