/** Every environment variable that the sources read is explained: in one table of a README, or by `svc-code --help`; and no other is. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { helpText } from '../../features/cli/help.ts'
import { ConfigSections } from '../../features/config/index.ts'
import { standIns } from '../../features/config/stand-ins.ts'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { definePack } from '../../kernel/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'
import { projectRoot } from '../helpers/project-root.ts'

const root = fileURLToPath(projectRoot)
const variable = /SVC_CODE_[A-Z][A-Z_]*[A-Z](?![A-Z_<])/g
/** Names that users make up. */
const family = 'SVC_CODE_EXPERIMENTAL_<ID>'

/** What the overlays of the configuration sections ask for, however they put the names together. */
async function askedBySections(t: Parameters<typeof startTestKernel>[0]): Promise<Set<string>> {
  const asked = new Set<string>()
  const answering = (value: string): NodeJS.ProcessEnv =>
    new Proxy(
      {},
      {
        get: (_, name) => {
          if (typeof name === 'string' && name.startsWith('SVC_CODE_')) asked.add(name)
          return value
        }
      }
    )
  const spy = definePack({
    name: 'spy',
    setup: ctx => {
      const sections = ctx.collect(ConfigSections)
      ctx.tap(ctx.hooks.started, () => {
        // Some are only asked for when another says nothing.
        for (const env of [answering('1'), answering('0')]) {
          for (const { overlay } of [...sections.items(), ...standIns]) overlay?.(env)
        }
      })
    }
  })
  await startTestKernel(t, { packs: [...(await loadDefaultPacks()), spy] })
  return asked
}

function namedInSources(): string[] {
  const files = ['kernel', 'features'].flatMap(dir =>
    readdirSync(join(root, dir), { recursive: true }).map(name => join(root, dir, String(name)))
  )
  const texts = files.filter(file => file.endsWith('.ts')).map(file => readFileSync(file, 'utf8'))
  const read = texts.flatMap(text => [...text.matchAll(/\bvariables\.\w+\('([A-Z_]+)'/g)].map(([, name]) => `SVC_CODE_${name}`))
  return [...read, ...texts.flatMap(text => text.match(variable) ?? [])]
}

function tableRows(): string[] {
  const packs = readdirSync(join(root, 'features'), { withFileTypes: true }).filter(entry => entry.isDirectory())
  const docs = readdirSync(join(root, 'docs')).map(name => join('docs', name))
  const readmes = ['README.md', ...docs, ...packs.map(({ name }) => join('features', name, 'README.md'))].flatMap(file => {
    try {
      return [readFileSync(join(root, file), 'utf8')]
    } catch {
      return [] // the command line is no pack
    }
  })
  return readmes.flatMap(text => text.split('\n').filter(line => line.startsWith('|')))
}

test('every environment variable has one row in a README, or stands in the help', async t => {
  const read = new Set([...(await askedBySections(t)), ...namedInSources()])
  const rows = tableRows().flatMap(row => [...new Set(row.match(variable))])
  const help = new Set(helpText('0').match(variable))

  assert.ok(read.size > 35, `only ${read.size} were found`)
  assert.deepEqual([...read].filter(name => !rows.includes(name) && !help.has(name)).sort(), [], 'nobody says what they do')
  assert.deepEqual(
    rows.filter((name, at) => rows.indexOf(name) !== at),
    [],
    'explained twice'
  )
  assert.deepEqual(
    [...new Set([...rows, ...help])].filter(name => !read.has(name)),
    [],
    'nobody reads them'
  )
  assert.ok(
    tableRows().some(row => row.includes(family)),
    `${family} is explained`
  )
})
