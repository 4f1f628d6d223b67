/** What other packs say of a session that is about to be made: whether it may be, and what it keeps. */
import { AppError, type PackContext } from '../../kernel/index.ts'
import { SessionChecks, SessionDefaults } from './service.ts'

type Context = Pick<PackContext, 'collect' | 'onAccountOf' | 'blame'>

export function newSessionRules(ctx: Context) {
  const checks = ctx.collect(SessionChecks)
  const defaults = ctx.collect(SessionDefaults)
  return {
    /** Throws what keeps a session from being made. A check that fails otherwise keeps nothing from it. */
    async assertAllowed(): Promise<void> {
      for (const { pack, item } of checks.entries()) {
        const what = `session check ${item.name}`
        try {
          await ctx.onAccountOf(pack, what, () => item.check())
        } catch (error) {
          if (AppError.is(error)) throw error
          ctx.blame(pack, what, error)
        }
      }
    },

    /** Values by name. One that fails is left out, and follows the configuration. */
    async defaults(): Promise<Record<string, unknown>> {
      const told = defaults.entries().map(async ({ pack, item }): Promise<[string, unknown][]> => {
        const what = `session default ${item.name}`
        try {
          return [[item.name, await ctx.onAccountOf(pack, what, () => item.value())]]
        } catch (error) {
          ctx.blame(pack, what, error)
          return []
        }
      })
      return Object.fromEntries((await Promise.all(told)).flat())
    }
  }
}
