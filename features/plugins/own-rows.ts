/** What packs of this server offer in the marketplace beside its catalog. */
import { askEach, type Collection, invalid, type PackContext } from '../../kernel/index.ts'
import { MarketplaceRows } from './service.ts'

export class OwnRows {
  readonly #ctx: Pick<PackContext, 'onAccountOf' | 'blame'>
  readonly #contributed: Collection<MarketplaceRows>

  constructor(ctx: Pick<PackContext, 'collect' | 'onAccountOf' | 'blame'>) {
    this.#ctx = ctx
    this.#contributed = ctx.collect(MarketplaceRows)
  }

  all(): ReturnType<MarketplaceRows['rows']> {
    return askEach(
      this.#contributed.entries(),
      this.#ctx,
      () => 'rows of the marketplace',
      each => each.rows()
    )
  }

  /** A source of the marketplace (`capability:<id>`, an address) as it can be fetched. Throws 40001 for a capability that has none. */
  fetchable(source: string): string {
    const [, capability] = /^capability:(.*)$/.exec(source.trim()) ?? []
    if (capability === undefined) return source
    const row = this.all().find(each => each.capabilityId === capability && each.supported)
    if (row?.pluginSource !== undefined) return row.pluginSource
    const message = row ? `nothing is configured to install ${capability} from` : `this server has no capability ${capability}`
    throw invalid([{ path: 'body.source', message }])
  }
}
