/** Reading small files of the home that somebody else may have replaced by something that never ends. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'

/** The text of a file. Throws at once for pipes, devices and directories, whose reading could hang; system errors pass as they are. */
export function readRegularFile(path: string): string {
  const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)) // without it the open of a pipe waits for a writer
  try {
    if (!fstatSync(file).isFile()) throw new Error(`${path} is not a regular file`)
    return readFileSync(file, 'utf8')
  } finally {
    closeSync(file)
  }
}
