/** The examples as somebody's own packages: with the imports that the documents name, and compilers of users. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { projectRoot } from '../helpers/project-root.ts'
import { freshDir } from '../helpers/temp.ts'

const root = fileURLToPath(projectRoot)
const examples = ['bookmarks', 'checksum', 'house-rules', 'line-model']

/** As the page about writing packs says. */
const asPackage = (source: string): string =>
  source
    .replaceAll("'../../kernel/index.ts'", "'svc-code/kernel'")
    .replaceAll(/'\.\.\/\.\.\/(?:kernel\/testing|testing\/index)\.ts'/g, "'svc-code/kernel/testing'")
    .replaceAll(/'\.\.\/\.\.\/features\/([a-z-]+)\/index\.ts'/g, "'svc-code/features/$1'")

test('examples and their tests compile strictly against the package with TypeScript 5.9 and 7', async () => {
  const dir = await freshDir()
  await mkdir(join(dir, 'node_modules', '@types'), { recursive: true })
  await symlink(root, join(dir, 'node_modules', 'svc-code'))
  await symlink(join(root, 'node_modules', '@types', 'node'), join(dir, 'node_modules', '@types', 'node'))
  for (const example of examples) {
    await mkdir(join(dir, example))
    for (const name of await readdir(join(root, 'examples', example))) {
      await writeFile(join(dir, example, name), asPackage(await readFile(join(root, 'examples', example, name), 'utf8')))
    }
  }
  const compilerOptions = {
    target: 'ES2022',
    types: ['node'],
    module: 'NodeNext',
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
    rewriteRelativeImportExtensions: true,
    skipLibCheck: false,
    skipDefaultLibCheck: true,
    noEmit: true
  }
  await writeFile(join(dir, 'package.json'), '{ "type": "module" }')
  await writeFile(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: examples }))
  for (const compiler of ['typescript-5', 'typescript']) {
    const { stdout, status } = spawnSync(process.execPath, [join(root, 'node_modules', compiler, 'bin', 'tsc'), '-p', dir], {
      encoding: 'utf8'
    })
    assert.equal(`${status} ${stdout}`, '0 ', compiler)
  }
})
