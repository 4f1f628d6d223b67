/** Which model an agent gets that works for another one: the caller's, or one of the pool (`secondary_model`). */
import { invalid, Type } from '../../kernel/index.ts'
import { type Config, experimentalSection, secondaryModelSection } from '../config/index.ts'
import type { Llm } from '../llm/index.ts'
import { type ChildModel, SubagentRefused } from './service.ts'

export interface Pool {
  /** Alias to when it is to be taken; undefined: the model cannot be chosen. */
  readonly models?: Readonly<Record<string, string>>
  readonly default_model?: string
  readonly force: boolean
}

/** Argument of a tool that starts agents, while there are models to choose from. */
export const chosenModel = Type.Optional(Type.String({ description: 'One of the models that Agent lists' }))

/** The pool that counts now; undefined: every agent works with the model of its caller. */
export function poolOf(config: Config | undefined): Pool | undefined {
  const flags = config?.get(experimentalSection)
  if (!config || !(flags?.['secondary-model'] ?? flags?.secondary_model)) return undefined
  const { default_model, model, models, force = false } = config.get(secondaryModelSection)
  const first = default_model ?? model
  if (first === undefined && !models) return undefined
  return { force, ...(models ? { models } : {}), ...(first === undefined ? {} : { default_model: first }) }
}

/** Throws 40001 for a pool that is none. A model that lacks its key, or whose pack is away, is there: whoever starts an agent with it hears why. */
export function checkPool(pool: Pool | undefined, llm: Pick<Llm, 'knows'>): void {
  if (!pool) return
  const { models, default_model, force } = pool
  const problems: { path: string; message: string }[] = []
  const problem = (path: string, message: string) => problems.push({ path: `secondary_model.${path}`, message })
  if (models && Object.hasOwn(models, 'primary')) problem('models.primary', 'this name is reserved')
  if (models && default_model === undefined) problem('default_model', 'is required beside models')
  if (models && default_model !== undefined && !Object.hasOwn(models, default_model)) problem('default_model', 'is none of models')
  if (force && default_model === undefined) problem('force', 'needs default_model')
  if (force && models) problem('force', 'excludes models')
  for (const alias of new Set([...Object.keys(models ?? {}), ...(default_model === undefined ? [] : [default_model])])) {
    if (alias === 'primary' || llm.knows(alias)) continue
    problem(models && Object.hasOwn(models, alias) ? `models.${alias}` : 'default_model', 'no such model')
  }
  if (problems.length > 0) throw invalid(problems)
}

/** Throws SubagentRefused. `caller`: its model and effort. */
export function modelFor(asked: string | undefined, pool: Pool | undefined, caller: ChildModel): ChildModel {
  if (!pool) {
    if (asked !== undefined) throw new SubagentRefused('The model of a subagent cannot be chosen here.')
    return caller
  }
  if (pool.force) {
    if (asked !== undefined) throw new SubagentRefused('The model of subagents is fixed by the configuration.')
    return pool.default_model === undefined ? caller : { alias: pool.default_model }
  }
  if (asked === 'primary') return caller
  if (asked !== undefined && !Object.hasOwn(pool.models ?? {}, asked)) {
    const known = ['primary', ...Object.keys(pool.models ?? {})].join(', ')
    throw new SubagentRefused(`There is no model ${asked} for subagents; known are ${known}.`)
  }
  const alias = asked ?? pool.default_model
  return alias === undefined ? caller : { alias }
}
