/** Which hosts the pack asks, and why. */
import type { PackContext } from '../../kernel/index.ts'
import { OutboundHosts } from '../llm/index.ts'

/** Address of the marketplace's catalog; undefined: there is none. */
export const catalogAddress = (): string | undefined => process.env.SVC_CODE_PLUGIN_MARKETPLACE_URL?.trim() || undefined

export function nameHosts(ctx: Pick<PackContext, 'contribute' | 'name'>): void {
  ctx.contribute(OutboundHosts, {
    pack: ctx.name,
    hosts: () => {
      const url = catalogAddress()
      return [
        ...(url !== undefined && /^https?:/.test(url) ? [{ url, why: 'the plugin marketplace', when: 'a client asks for it' }] : []),
        { why: 'archives of plugins', when: 'a plugin is installed from an address' }
      ]
    }
  })
}
