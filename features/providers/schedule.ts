/** When models are discovered again by themselves: at the start of the server and at intervals, as the configuration says. */
import { longestMs } from '../../kernel/index.ts'
import { type Config, modelCatalogSection } from '../config/index.ts'

/** The timer; armed from the start. */
interface Schedule {
  /** Refreshes at once when `refresh_on_start`. Called when the server is up: logins that a refresh needs are there by then. */
  begin(): void
  close(): void
}

/**
 * Calls `refresh` (which never rejects) `refresh_interval_ms` after each call ended; 0 switches that off. Changes of the configuration
 * count at once.
 */
export function scheduleRefresh(config: Pick<Config, 'get' | 'onChange'>, refresh: () => Promise<unknown>): Schedule {
  let timer: NodeJS.Timeout | undefined
  let armed: number | undefined
  let closed = false
  const interval = () => config.get(modelCatalogSection).refresh_interval_ms
  const arm = () => {
    clearTimeout(timer)
    if (closed) return // the configuration may be gone
    armed = interval()
    if (armed === 0) return
    timer = setTimeout(run, Math.min(armed, longestMs))
    timer.unref()
  }
  const run = () => {
    clearTimeout(timer)
    armed = undefined // a change that arrives while it runs counts at its end
    void refresh().finally(arm)
  }
  const undo = config.onChange(() => {
    if (armed !== undefined && interval() !== armed) arm()
  })
  arm()
  return {
    begin() {
      if (config.get(modelCatalogSection).refresh_on_start) run()
    },
    close() {
      closed = true
      clearTimeout(timer)
      undo()
    }
  }
}
