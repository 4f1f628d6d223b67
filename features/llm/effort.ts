/** How hard a model thinks: `off`, `on` or a named level. */
import { invalid } from '../../kernel/index.ts'
import type { ResolvedModel } from './request.ts'
import type { ThinkingConfig } from './sections.ts'

/**
 * Level a model uses when nobody chose one: its declared default, else the middle of its levels (the higher of two), else on or off by
 * capability.
 */
export function defaultEffort(model: ResolvedModel): string {
  const levels = model.support_efforts ?? []
  if (model.default_effort !== undefined && levels.includes(model.default_effort)) return model.default_effort
  const middle = levels[Math.floor(levels.length / 2)]
  return middle ?? (canThink(model) ? 'on' : 'off')
}

/**
 * `forced` (environment) > requested > configuration > model default. What the model cannot do becomes its default, and so does `on` where
 * it has levels.
 */
export function chooseEffort(model: ResolvedModel, config: ThinkingConfig, requested?: string, forced?: string): string {
  const configured = config.enabled === false ? 'off' : config.effort
  const wanted = forced || requested || configured || defaultEffort(model)
  const unnamed = wanted === 'on' && (model.support_efforts ?? []).length > 0
  return !unnamed && offers(model, wanted) ? wanted : defaultEffort(model)
}

/** Throws 40001 at path `thinking` when the model is known not to offer the level. */
export function checkEffort(model: ResolvedModel, requested: string): void {
  if (model.protocol !== 'svc' || requested === 'off' || offers(model, requested)) return
  const known = ['off', 'on', ...(model.support_efforts ?? [])].join(', ')
  throw invalid([{ path: 'thinking', message: `model ${model.alias} has no thinking level ${requested}; it has ${known}` }])
}

/** Only `svc` declares its levels reliably; other providers get the string as it is. */
function offers(model: ResolvedModel, effort: string): boolean {
  if (effort === 'off') return !model.capabilities.includes('always_thinking')
  if (model.protocol !== 'svc' || effort === 'on') return true
  const levels = model.support_efforts
  return levels === undefined ? canThink(model) : levels.includes(effort)
}

/** By its capabilities. */
export function canThink(model: Pick<ResolvedModel, 'capabilities'>): boolean {
  return model.capabilities.includes('thinking') || model.capabilities.includes('always_thinking')
}

/**
 * Sampling of a request: none while the model thinks, because most providers refuse it then. `off`: the request says that it must not
 * think; a model that always thinks does so anyway.
 */
export function samplingOf(model: ResolvedModel, off: boolean): Pick<ResolvedModel, 'temperature' | 'top_p'> {
  if (canThink(model) && (!off || model.capabilities.includes('always_thinking'))) return {}
  const { temperature, top_p } = model
  return { ...(temperature !== undefined && { temperature }), ...(top_p !== undefined && { top_p }) }
}
