/** Ids of workspaces: a readable part and a hash, both out of the text of the root. */
import { createHash } from 'node:crypto'

/** The text that identifies a root: forward slashes, no slash at the end. Links and letter case stay as they are. */
export function rootKey(root: string): string {
  const text = root.replaceAll('\\', '/')
  let end = text.length
  while (end > 0 && text[end - 1] === '/') end--
  return text.slice(0, end)
}

/** Last segment of a root; empty for the file system's own root. */
export function baseName(root: string): string {
  const key = rootKey(root)
  return key.slice(key.lastIndexOf('/') + 1)
}

/** `wd_<slug>_<hash12>` (contract 3, Workspace object). */
export function workspaceId(root: string): string {
  const hash = createHash('sha256').update(rootKey(root), 'utf8').digest('hex').slice(0, 12)
  return `wd_${slugOf(baseName(root))}_${hash}`
}

function slugOf(base: string): string {
  const trim = (text: string) => text.replace(/^-+|-+$/g, '')
  const slug = trim(trim(base.toLowerCase().replace(/[^a-z0-9._-]+/g, '-')).slice(0, 40))
  return slug === '' || slug === '.' || slug === '..' ? 'workspace' : slug
}
