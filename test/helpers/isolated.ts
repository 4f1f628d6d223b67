/** Packs in processes of their own: those of examples, and of modules that a test writes. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { loadIsolated } from '../../features/cli/isolation/isolated-pack.ts'
import type { IsolationOptions } from '../../features/cli/isolation/options.ts'
import { loadPacks } from '../../features/cli/load-pack.ts'
import type { Pack } from '../../kernel/index.ts'
import { freshDir } from './temp.ts'

const standard: IsolationOptions = { memory_mb: 512, hang_s: 5, restarts: 10 }

/** The first pack of a file. */
export async function isolated(file: string, options: Partial<IsolationOptions> = {}): Promise<Pack> {
  const [pack] = await loadIsolated({ spec: file, from: '/' }, { ...standard, ...options })
  return pack as Pack
}

/** A pack whose module is this text, behind the imports that all need. */
export async function isolatedText(text: string, options: Partial<IsolationOptions> = {}): Promise<Pack> {
  return isolated(await packFile(text), options)
}

export async function packFile(text: string): Promise<string> {
  const file = join(await freshDir(), 'pack.mjs')
  await writeFile(
    file,
    `import { AppError, binary, defineEvent, definePack, defineRoute, defineStore, errorSpec, Type } from 'svc-code/kernel'\n${text}`
  )
  return file
}

type Test = (t: TestContext, pack: Pack) => Promise<void>

/** The same test of the same file, in the server's process and in one of its own. */
export function bothWays(file: string | Promise<string>, what: string, run: Test): void {
  test(`in the process of the server: ${what}`, async t => {
    const { packs } = await loadPacks([{ spec: await file, from: '/' }], [])
    await run(t, packs[0] as Pack)
  })
  test(`in a process of its own: ${what}`, async t => run(t, await isolated(await file)))
}

export const exampleFile = (name: string) => fileURLToPath(new URL(`../../examples/${name}/pack.js`, import.meta.url))
