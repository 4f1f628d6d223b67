/** Small files that others may replace at any moment by something that would hold up whoever opens it. */
import { readBounded } from '../../kernel/index.ts'

/** The text of a regular file, links followed; undefined for anything else, for one of more than `most` bytes, and for one that nobody may read. */
export function smallText(path: string, most: number): Promise<string | undefined> {
  return readBounded(path, most).then(
    bytes => bytes.toString(),
    () => undefined // gone, something else, or its disk fails
  )
}
