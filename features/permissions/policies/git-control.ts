/** Git's own files can run code (hooks, configuration), so they are never touched unasked. */
import { relative } from 'node:path'
import { isInside } from '../git.ts'
import { ask, type Policy, pathsOf } from '../policy.ts'

export const gitControl: Policy = async facts => {
  const paths = pathsOf(facts)
  if (paths.length === 0) return undefined
  if (paths.some(path => relative(facts.cwd, path).toLowerCase().split(/[/\\]/).includes('.git'))) return ask
  const tree = await facts.workTree()
  return tree?.control.some(dir => paths.some(path => isInside(path, dir))) ? ask : undefined
}
