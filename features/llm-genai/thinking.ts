/** How hard the model thinks, in the words of the generate-content wire. */
import { canThink, type LlmRequest } from '../llm/index.ts'
import { budgets, type Family, familyOf, levels } from './names.ts'

/** `thinkingConfig` of the request, or undefined where the model would refuse one. */
export function thinkingConfig({ model, effort }: LlmRequest): Readonly<Record<string, unknown>> | undefined {
  const family = familyOf(model.name)
  const off = effort === 'off' || effort === ''
  const able = family ? family.thinks !== 'never' : canThink(model)
  // A model that is not known to think is left alone, unless somebody asks for it.
  if (family?.thinks === 'never' || (off && !able)) return undefined
  if (effort === 'on') return { includeThoughts: true }
  return { includeThoughts: !off, ...amount(family, off ? undefined : effort) }
}

function amount(family: Family | undefined, effort: string | undefined): Readonly<Record<string, unknown>> {
  if (family?.thinks === 'level') {
    return { thinkingLevel: effort === undefined ? family.off : (levels[effort] ?? effort.toUpperCase()) }
  }
  const { least, most } = family?.thinks === 'budget' ? family : { least: 0, most: Number.POSITIVE_INFINITY }
  const wanted = effort === undefined ? 0 : Object.hasOwn(budgets, effort) ? budgets[effort]! : budgets.high!
  return { thinkingBudget: Math.min(Math.max(wanted, least), most) }
}
