/** Failures of file routes (contract 1, error codes). */
import { errorSpec } from '../../kernel/index.ts'

export const PathIsDirectory = errorSpec('path_is_directory', 40906, 'the path is a directory')
export const FileBinary = errorSpec('file_binary', 40907, 'the file is binary')
export const PathExists = errorSpec('path_exists', 40919, 'the path exists already')
export const FileTooLarge = errorSpec('file_too_large', 41302, 'the file is larger than 10 MiB')
