/** Refreshes at the start and then every so often, as `model_catalog` of the configuration says. */
import { type Config, modelCatalogSection } from '../config/index.ts'

/** Longest delay that a timer takes, ms. */
const MAX_DELAY_MS = 2 ** 31 - 1

/** Calls `refresh` at once when `refresh_on_start`, and `refresh_interval_ms` after each call ended; 0 switches that off. Answers its end. */
export function scheduleRefresh(config: Pick<Config, 'get' | 'onChange'>, refresh: () => Promise<unknown>): () => void {
  let timer: NodeJS.Timeout | undefined
  let armed: number | undefined
  let ended = false
  const interval = () => config.get(modelCatalogSection).refresh_interval_ms
  const arm = () => {
    clearTimeout(timer)
    armed = interval()
    if (ended || armed === 0) return
    timer = setTimeout(run, Math.min(armed, MAX_DELAY_MS))
    timer.unref()
  }
  const run = () => void refresh().finally(arm)
  const undo = config.onChange(() => {
    if (armed !== undefined && interval() !== armed) arm()
  })
  if (config.get(modelCatalogSection).refresh_on_start) run()
  else arm()
  return () => {
    ended = true
    clearTimeout(timer)
    undo()
  }
}
