/** Loads a third-party pack from a path or a module name. Its `svc-code/...` imports resolve to this very installation. */
import { existsSync } from 'node:fs'
import { createRequire, register } from 'node:module'
import { isAbsolute, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Pack } from '../../kernel/index.ts'

let hooked = false

/** `default` (or `packs`) of the module must be a pack (or packs). Throws with the spec named. */
export async function loadPack(spec: string, from: string): Promise<Pack[]> {
  const url = locate(spec, from)
  if (/\.[cm]?ts$/.test(url) && !('typescript' in process.features && process.features.typescript)) {
    throw new Error(`pack ${spec} is TypeScript, which needs Node 22.18 or newer; give its compiled .js file`)
  }
  if (!hooked) {
    hooked = true
    register('./resolve-self.js', import.meta.url)
  }
  let loaded: { default?: unknown; packs?: unknown }
  try {
    loaded = (await import(url)) as typeof loaded
  } catch (cause) {
    throw new Error(`pack ${spec} could not be loaded: ${(cause as Error).message}`, { cause })
  }
  const found = [loaded.default, ...(Array.isArray(loaded.packs) ? loaded.packs : [])].filter(isPack)
  if (found.length === 0) throw new Error(`pack ${spec} has no pack as its default export (made with definePack)`)
  return found
}

function locate(spec: string, from: string): string {
  const path = isAbsolute(spec) ? spec : resolve(from, spec)
  if (isAbsolute(spec) || spec.startsWith('.') || existsSync(path)) {
    if (!existsSync(path)) throw new Error(`pack ${spec}: there is no file ${path}`)
    return pathToFileURL(path).href
  }
  try {
    return pathToFileURL(createRequire(join(from, 'package.json')).resolve(spec)).href
  } catch {
    return spec // a module that only `import` can resolve; a failure there names the spec
  }
}

function isPack(value: unknown): value is Pack {
  return typeof value === 'object' && value !== null && (value as { kind?: unknown }).kind === 'pack'
}
