/** `svc-code pack check` and `pack test`: a pack of this directory held against what every pack must pass, and its own tests. */
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import type { Pack } from '../../kernel/index.ts'
import { defaultPacks, demoPacks, loadDefaultPacks } from '../default-packs.ts'
import { CommandError } from './command-error.ts'
import { kernelServices } from './deployment-packs.ts'
import type { Io } from './io.ts'
import { forgetModule, loadPacks } from './load-pack.ts'
import { sourceOf } from './pack-files.ts'

/** The packs of a file or directory, as their author has them at hand; throws when they cannot be imported. */
export async function packsAt(word: string): Promise<{ file: string; packs: Pack[] }> {
  const path = resolve(word)
  if (!existsSync(path)) throw new CommandError(`there is no ${path}`)
  const file = statSync(path).isDirectory() ? sourceOf(path) : path
  forgetModule(file, process.cwd())
  const { packs, failed } = await loadPacks([{ spec: file, from: process.cwd() }], Object.keys(defaultPacks))
  if (failed.length > 0) throw new CommandError(failed.join('\n'))
  return { file, packs }
}

/** What can be told without a server. */
export async function checkPack(word: string, { out }: Io): Promise<number> {
  const { file, packs } = await packsAt(word)
  const others = await loadDefaultPacks([])
  const known = new Set([...kernelServices, ...[...others, ...packs].flatMap(one => one.provides.map(({ id }) => id))])
  let bad = 0
  for (const pack of packs) {
    const faults = [
      ...(pack.broken ? [pack.broken.message] : []),
      ...(/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/.test(pack.name) ? [] : ['its name is not kebab-case']),
      ...(/^\S.{9,110}$/.test(pack.description ?? '') ? [] : ['it has no description of 10 to 110 characters']),
      ...Object.values(pack.needs).flatMap(({ id }) => (known.has(id) ? [] : [`nobody provides '${id}', which it needs`])),
      ...others.flatMap(other =>
        other.provides.some(({ id }) => pack.provides.some(own => own.id === id))
          ? [`it provides a service of ${other.name}: an operator must allow that in [packs.replace]`]
          : []
      ),
      ...Object.entries(pack.config?.properties ?? {}).flatMap(([key, schema]) => [
        ...(schema.description ? [] : [`option ${key} has no description`]),
        ...(schema.default === undefined && pack.config?.required?.includes(key)
          ? [`option ${key} has no default: the pack fails without it`]
          : [])
      ])
    ]
    bad += faults.length
    const found = faults.length === 0 ? 'fine' : `${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}`
    out(`${pack.name} (${file}): ${found}\n${faults.map(text => `  ${text}\n`).join('')}`)
  }
  return bad === 0 ? 0 : 1
}

/** The hygiene checks, then the tests beside the pack, then what came of both. */
export async function testPack(word: string, io: Io): Promise<number> {
  const { file, packs } = await packsAt(word)
  const { packChecks } = await import('../../kernel/testing.ts')
  const others = [...(await loadDefaultPacks([])), ...(await loadDefaultPacks([], undefined, demoPacks))]
  const results: boolean[] = []
  for (const pack of packs) {
    io.out(`${pack.name} (${file}): what every pack must pass\n`)
    const told = new Set<string>()
    for (const check of packChecks(pack, { others: [...others, ...packs.filter(other => other !== pack)] })) {
      const reason = await check.run().then(
        () => undefined,
        (error: unknown) => (error instanceof Error ? error.message : String(error))
      )
      results.push(reason === undefined)
      io.out(`  ${reason === undefined ? 'ok  ' : 'FAIL'}  ${check.name}\n`)
      if (reason !== undefined) io.out(`        ${told.has(reason) ? 'as above' : reason.replaceAll('\n', '\n        ')}\n`)
      if (reason !== undefined) told.add(reason)
    }
  }
  const own = await ownTests(dirname(file), io)
  const passed = results.filter(Boolean).length
  const checks = passed === results.length ? `all ${passed} checks passed` : `${results.length - passed} of ${results.length} checks FAILED`
  const tests =
    own === undefined ? 'there are no tests beside it (*.test.ts, *.test.js)' : `its own tests ${own === 0 ? 'passed' : 'FAILED'}`
  io.out(`\n${checks}; ${tests}\n`)
  return passed === results.length && !own ? 0 : 1
}

/** Runs the test files of a directory in one process; undefined when there are none, else 0 when all passed. */
async function ownTests(dir: string, { out, env }: Io): Promise<number | undefined> {
  const files = [dir, join(dir, 'test')].flatMap(one =>
    existsSync(one) ? readdirSync(one).flatMap(name => (/\.test\.[cm]?[jt]s$/.test(name) ? [join(one, name)] : [])) : []
  )
  if (files.length === 0) return undefined
  out(`\nits own tests: ${files.map(name => relative(dir, name)).join(', ')}\n`)
  const hooks = new URL('./pack-hooks.js', import.meta.url).href
  const child = spawn(process.execPath, ['--import', hooks, '--test', '--test-reporter=spec', ...files], {
    env: { ...process.env, ...env, NODE_TEST_CONTEXT: undefined },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => out(String(chunk)))
  return await new Promise(done => child.once('close', code => done(code ?? 1)))
}
