/** `svc-code pack new`: a directory with a working pack: a route, an event, an option, a store, and a test of it. */
import { existsSync, mkdirSync, readdirSync, realpathSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join, relative, resolve } from 'node:path'
import { defaultPacks } from '../default-packs.ts'
import { CommandError } from './command-error.ts'
import type { Io } from './io.ts'
import { templates } from './pack-templates.ts'
import { ownDirectory } from './version.ts'

export async function newPack(word: string, { out }: Io): Promise<number> {
  const dir = resolve(word)
  const name = basename(dir)
  if (!/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/.test(name) || name.length > 40)
    throw new CommandError(`'${name}' is no name for a pack: small letters, digits and single hyphens, a letter first, at most 40`)
  if (Object.hasOwn(defaultPacks, name)) throw new CommandError(`'${name}' is the name of a pack of the server`)
  if (existsSync(dir) && readdirSync(dir).length > 0) throw new CommandError(`${dir} is there already and not empty`)
  mkdirSync(dir, { recursive: true })
  for (const [file, text] of Object.entries(templates(name, sourceOfTypes(dir)))) writeFileSync(join(dir, file), text)
  out(`made ${dir}

  cd ${word}
  npm install              TypeScript, for the build, and for running .ts files before Node 22.18
  npx svc-code pack test   hygiene checks and pack.test.ts
  npx svc-code pack dev    a server with the pack, swapped at every change
  npx svc-code pack add .  for good, also in a running server
`)
  return 0
}

/** For `npm install`: this installation, when nothing above the directory has it. */
function sourceOfTypes(dir: string): string | undefined {
  try {
    createRequire(join(dir, 'package.json')).resolve('svc-code/kernel')
    return undefined
  } catch {
    return `file:${relative(realpathSync(dir), ownDirectory()) || '.'}`
  }
}
