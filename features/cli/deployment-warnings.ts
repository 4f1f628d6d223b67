/** What is wrong or odd in `[packs]`, as far as it can be told without running packs of third parties. */
import { basename, dirname, extname } from 'node:path'
import { nearest } from '../../kernel/index.ts'
import { deploymentConfig } from '../../kernel/lifecycle/context.ts'
import { defaultPacks, demoPacks, loadDefaultPack } from '../default-packs.ts'
import { type Deployment, readDeployment } from './deployment.ts'
import type { FlagValues } from './flags.ts'

/** One line each; a fault of the file is one of them. `served`: the packs that a running server has. */
export async function configuredWarnings(flags: FlagValues, env: NodeJS.ProcessEnv, served?: readonly string[]): Promise<string[]> {
  let deployment: Deployment
  try {
    deployment = await readDeployment({ ...(flags.home === undefined ? {} : { home: flags.home }) }, env)
  } catch (error) {
    return [`no server can start: ${error instanceof Error ? error.message : String(error)}`]
  }
  const { load, disable, require, config, isolate } = deployment
  const known = Object.keys({ ...defaultPacks, ...demoPacks })
  const apart = typeof isolate === 'object' ? isolate : []
  // Packs of others are named after their files and packages, as a rule, and `pack add` isolates them by name.
  const guessed = load.flatMap(({ spec }) => [basename(spec, extname(spec)).replace(/^svc-code-/, ''), basename(dirname(spec))])
  const named = [...guessed, ...(served ?? (load.length > 0 ? apart : []))]
  const lists = { disable, require, config: Object.keys(config) }
  const strangers = Object.entries(lists).flatMap(([key, names]) =>
    names.flatMap(name => ([...known, ...named].includes(name) ? [] : [{ key, name }]))
  )
  const odd = strangers.flatMap(({ key, name }) => {
    const near = nearest(name, known, name.length < 6 ? 1 : 2)
    if (load.length > 0 && near === undefined && !served) return [] // it may be one of those that are loaded
    return [
      `[packs] ${key} in config.toml: no ${served ? '' : 'default '}pack is named '${name}'${near === undefined ? '' : `; did you mean ${near}?`}`
    ]
  })
  odd.push(
    ...apart.flatMap(name => {
      if (known.includes(name))
        return [`[packs] isolate in config.toml: '${name}' is a default pack, which runs in the process of the server`]
      return load.length === 0 || (served && !named.includes(name))
        ? [`[packs] isolate in config.toml: no pack of load is named '${name}'`]
        : []
    })
  )
  const options = await Promise.all(
    Object.entries(config).map(async ([name, given]) => {
      if (!Object.hasOwn(defaultPacks, name)) return []
      try {
        deploymentConfig(await loadDefaultPack(name), given)
        return []
      } catch (error) {
        return [`config.toml: ${(error as Error).message}`]
      }
    })
  )
  return [...odd, ...options.flat()]
}
