/** Rules of the secondary-model pool that need nothing but the pool. */
import type { ConfigRemark } from './service.ts'

/** What the rules look at. */
export interface ModelPool {
  readonly default_model?: string
  readonly models?: Readonly<Record<string, string>>
  readonly force?: boolean
}

/** What makes the pool useless. A patch may still store it, so that it can be put together in steps. */
export function reviewPool({ default_model, models, force }: ModelPool): ConfigRemark[] {
  const remarks: ConfigRemark[] = []
  const remark = (path: string, message: string) => remarks.push({ path, message, refused: false })
  if (models && Object.hasOwn(models, 'primary')) remark('models.primary', 'this name is reserved')
  if (models && default_model === undefined) remark('default_model', 'is required beside models')
  if (models && default_model !== undefined && !Object.hasOwn(models, default_model)) remark('default_model', 'is none of models')
  if (force && default_model === undefined) remark('force', 'needs default_model')
  if (force && models) remark('force', 'excludes models')
  return remarks
}
