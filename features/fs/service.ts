/** What files get from and give to other packs. */
import { serviceToken } from '../../kernel/index.ts'
import type { Root } from '../file-search/index.ts'
import type { FileStatus } from './contract.ts'

/** Status of a file or directory by its path, relative to the workspace, links on the way resolved; undefined: nothing watches over it. */
export type StatusOf = (path: string, directory: boolean) => FileStatus | undefined

/** Version control of what is listed; the git pack provides it. */
export interface FileStatuses {
  /** Statuses of what is below these directories of a workspace; one that is none is passed over. */
  below(root: Root, directories: readonly string[], signal: AbortSignal): Promise<StatusOf>
}
export const FileStatuses = serviceToken<FileStatuses>('file-statuses')
