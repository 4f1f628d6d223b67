/** What files get from and give to other packs. */
import { serviceToken } from '../../kernel/index.ts'
import type { FileStatus } from './contract.ts'

/** Status of a file or directory by its path, relative to the workspace. */
export type StatusOf = (path: string, directory: boolean) => FileStatus

/** Version control of a workspace, for listings; the git pack provides it. */
export interface FileStatuses {
  /** Undefined outside of a repository. `ignored`: ignored files are told, too (slower). */
  of(cwd: string, options: { readonly ignored: boolean; readonly signal: AbortSignal }): Promise<StatusOf | undefined>
}
export const FileStatuses = serviceToken<FileStatuses>('file-statuses')
