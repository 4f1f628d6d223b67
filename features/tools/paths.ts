/** Questions about paths that tools and permissions ask: what lies where, and which names usually hold credentials. */
import { isAbsolute, relative } from 'node:path'

/** True for the directory itself and everything below it. */
export function isInside(path: string, dir: string): boolean {
  const below = relative(dir, path)
  return below === '' || (!/^\.\.(?:[/\\]|$)/.test(below) && !isAbsolute(below))
}

const plain = new Set(['.env', 'id_rsa', 'id_ed25519', 'id_ecdsa', 'credentials', 'server.token'])
const suffixed = /^(?:id_rsa|id_ed25519|id_ecdsa|credentials)(?:[-_].*|\.(?:bak|backup|copy|disabled|key|old|orig|pem|save|tmp))$/
const publicKey = /^id_(?:rsa|ed25519|ecdsa)(?:[-_].*)?\.pub$/
const samples = new Set(['.env.example', '.env.sample', '.env.template'])
const folders = /(?:^|\/)\.(?:(?:aws|gcp|svc-code)\/credentials|svc-code\/config\.toml)(?:\/|$)/

/** Whether a path names a sensitive file. Case does not matter; the path need not exist. */
export function isSensitive(path: string): boolean {
  const normal = path.replaceAll('\\', '/').toLowerCase().replace(/\/+$/, '')
  const base = normal.slice(normal.lastIndexOf('/') + 1)
  if (samples.has(base) || publicKey.test(base)) return false
  return plain.has(base) || base.startsWith('.env.') || suffixed.test(base) || folders.test(normal)
}
