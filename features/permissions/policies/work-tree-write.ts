/** Changes below the working directory are undoable when git watches over it. */
import { sep } from 'node:path'
import { isInside } from '../git.ts'
import { approve, type Policy, pathsOf } from '../policy.ts'

export const workTreeWrite: Policy = async facts => {
  if ((facts.tool !== 'Write' && facts.tool !== 'Edit') || sep !== '/') return undefined
  const written = pathsOf(facts, ['write', 'readwrite'])
  if (written.length === 0 || !written.every(path => isInside(path, facts.cwd))) return undefined
  return (await facts.workTree()) ? approve : undefined
}
