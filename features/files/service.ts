/** Uploads as other packs see them. */
import { serviceToken } from '../../kernel/index.ts'
import type { UploadObject } from './contract.ts'

/** An upload and where its bytes are. They never change; they go when the upload is deleted or expires. */
export type Upload = UploadObject & {
  /** Absolute path. */
  readonly file: string
}

export interface Uploads {
  /** Undefined for an id that is unknown, malformed or expired. Throws PersistenceFailed (50003, HTTP 500) when the disk refuses, or its facts are damaged. */
  find(id: string): Promise<Upload | undefined>
}
export const Uploads = serviceToken<Uploads>('uploads')

/** Headers of what somebody uploaded: it does nothing when a browser opens it here, whatever its type says. */
export const passive = {
  'accept-ranges': 'bytes',
  'content-security-policy': "sandbox; default-src 'none'; style-src 'unsafe-inline'",
  'x-content-type-options': 'nosniff'
}
