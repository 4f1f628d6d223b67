/** Where a plugin comes from, as users write it: a directory, an archive or a repository. */
import { isAbsolute } from 'node:path'
import { invalid } from '../../kernel/index.ts'
import type { RepoRef } from './contract.ts'

export type PluginPlace =
  | { readonly kind: 'local-path'; readonly path: string }
  | { readonly kind: 'zip-url'; readonly url: string }
  /** `ref` undefined: the newest release, else the default branch. `base`: address of the repository. */
  | { readonly kind: 'repo'; readonly base: string; readonly owner: string; readonly repo: string; readonly ref: RepoRef | undefined }

const usage = 'must be an absolute path, the address of a zip archive, or the address of a repository'

/** `hosts`: origins of repository hosts. Throws ValidationFailed (40001). */
export function placeOf(source: string, hosts: readonly string[]): PluginPlace {
  const text = source.trim()
  if (!/^https?:\/\//i.test(text)) {
    if (!isAbsolute(text) || text.includes('\0')) throw invalid([{ path: 'body.source', message: usage }])
    return { kind: 'local-path', path: text }
  }
  if (!URL.canParse(text)) throw invalid([{ path: 'body.source', message: usage }])
  const url = new URL(text)
  if (url.username !== '' || url.password !== '')
    throw invalid([{ path: 'body.source', message: 'must not hold a user name or a password' }])
  return repoOf(url, hosts) ?? { kind: 'zip-url', url: url.href }
}

function repoOf(url: URL, hosts: readonly string[]): PluginPlace | undefined {
  const host = hosts.find(each => URL.canParse(each) && [new URL(each).host, `www.${new URL(each).host}`].includes(url.host))
  if (host === undefined) return undefined
  const [owner = '', name = '', ...rest] = url.pathname
    .split('/')
    .filter(part => part !== '')
    .map(decoded)
  const repo = name.replace(/\.git$/, '')
  if (![owner, repo].every(part => /^[\w.-]+$/.test(part) && !/^\.+$/.test(part))) {
    throw invalid([{ path: 'body.source', message: 'must name an owner and a repository' }])
  }
  const ref = refOf(rest)
  // What is behind it is a file to download: a release's own archive.
  if (ref === null) return undefined
  return { kind: 'repo', base: `${new URL(host).origin}/${owner}/${repo}`, owner, repo, ref }
}

/** Null: it is none of the forms. */
function refOf(rest: readonly string[]): RepoRef | undefined | null {
  if (rest.length === 0) return undefined
  const [form, ...parts] = rest
  if (form === 'releases' && parts[0] === 'tag' && parts.length > 1) return { kind: 'tag', value: parts.slice(1).join('/') }
  const value = parts.join('/')
  if (value === '') return null
  const isSha = /^[0-9a-f]{7,40}$/i.test(value)
  if (form === 'tree') return { kind: isSha ? 'sha' : 'branch', value }
  if (form === 'commit' && isSha) return { kind: 'sha', value }
  return null
}

/** As it is where it cannot be decoded. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

const path = (value: string) => value.split('/').map(encodeURIComponent).join('/')

/** Where the archive of a repository is. */
export function archiveUrl(base: string, { kind, value }: RepoRef): string {
  const form = kind === 'tag' ? 'refs/tags/' : kind === 'branch' && value !== 'HEAD' ? 'refs/heads/' : ''
  return `${base}/archive/${form}${path(value)}.zip`
}
