/** Has every module that is imported from now on go through the hooks of `resolve-self.ts`. */
import * as module from 'node:module'
import { load, resolve } from './resolve-self.ts'

/** Of Node 22.15 and later. */
type RegisterHooks = (hooks: { readonly resolve: typeof resolve; readonly load: typeof load }) => void

/**
 * Does Node run hooks in the thread that imports? From version 24 on that is the way to have them: those in a thread of their own are
 * deprecated, and the first import through them sometimes failed.
 */
export const inThread = Number.parseInt(process.versions.node, 10) >= 24

export function hookModules(): void {
  if (inThread) (module as unknown as { readonly registerHooks: RegisterHooks }).registerHooks({ resolve, load })
  else module.register('./resolve-self.js', import.meta.url)
}
