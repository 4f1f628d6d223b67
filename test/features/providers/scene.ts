/** A server with configuration, models and providers, on a home that may hold a configuration already. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import config from '../../../features/config/pack.ts'
import { readToml } from '../../../features/config/toml.ts'
import llm from '../../../features/llm/pack.ts'
import providers from '../../../features/providers/pack.ts'
import type { Pack } from '../../../kernel/index.ts'
import { startTestKernel, type TestKernel } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'

export const packs: readonly Pack[] = [config, llm, providers]

export interface Scene extends TestKernel {
  /** Text of the configuration file. */
  toml(): Promise<string>
  /** Its content. */
  file(): Promise<Record<string, unknown>>
}

export async function start(
  t: TestContext,
  { toml, home, more = [], now }: { toml?: string; home?: string; more?: readonly Pack[]; now?: () => Date } = {}
): Promise<Scene> {
  const place = home ?? (await freshDir(t))
  const path = join(place, 'config.toml')
  if (toml !== undefined) await writeFile(path, toml)
  const kernel = await startTestKernel(t, { packs: [...more, ...packs], home: place, ...(now && { now }) })
  const text = () => readFile(path, 'utf8')
  return { ...kernel, toml: text, file: async () => readToml(await text()) }
}

/** A body of `POST /providers` with what a test does not care about filled in. */
export const body = (id: string, more: object = {}) => ({
  id,
  type: 'compat_chat' as const,
  models: [{ model: 'small', max_context_size: 1000 }],
  ...more
})

/** Paths of the details of a failure. */
export const paths = (answer: { readonly details?: readonly { readonly path: string }[] }) => answer.details?.map(({ path }) => path)
