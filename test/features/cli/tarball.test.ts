/** What `npm pack` makes of the built project is a whole installation: it starts, and its doors can be imported and compiled against. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { projectRoot } from '../../helpers/project-root.ts'
import { freshDir } from '../../helpers/temp.ts'

const root = fileURLToPath(projectRoot)

test('a tarball of the package runs in an empty project, and holds no sources or tests', async () => {
  const dir = await freshDir()
  const run = (command: string, ...args: string[]) => spawnSync(command, args, { cwd: dir, encoding: 'utf8', timeout: 60_000 })
  const packed = spawnSync('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', dir], { cwd: root, encoding: 'utf8' })
  assert.equal(packed.status, 0, packed.stderr)
  const [{ filename, files }] = JSON.parse(packed.stdout) as [{ filename: string; files: { path: string }[] }]
  assert.deepEqual(
    files.map(({ path }) => path).filter(path => /^(?:test|examples|dist\/test|dist\/examples)\/|(?<!\.d)\.ts$|\.map$/.test(path)),
    []
  )
  const place = join(dir, 'node_modules', 'svc-code')
  await mkdir(place, { recursive: true })
  assert.equal(run('tar', '-xzf', filename, '-C', place, '--strip-components=1').status, 0)
  // What the registry would bring.
  for (const name of await readdir(join(root, 'node_modules')))
    if (!name.startsWith('.') && name !== 'svc-code') await symlink(join(root, 'node_modules', name), join(dir, 'node_modules', name))
  await writeFile(join(dir, 'package.json'), '{ "type": "module" }')
  const main = join(place, 'dist', 'bundle', 'main.js')

  assert.match(run(process.execPath, main, '--version').stdout, /^\d+\.\d+\.\d+$/m)
  const doors =
    "import('svc-code/kernel'), import('svc-code/kernel/testing'), import('svc-code/client'), import('svc-code/features/sessions')"
  const imported = run(process.execPath, '-e', `Promise.all([${doors}]).then(([kernel]) => console.log(typeof kernel.definePack))`)
  assert.equal(imported.stdout, 'function\n', imported.stderr)
  await writeFile(
    join(dir, 'mine.ts'),
    "import { definePack } from 'svc-code/kernel'\nimport { Sessions } from 'svc-code/features/sessions'\nimport { createClient } from 'svc-code/client'\nimport { packChecks } from 'svc-code/kernel/testing'\nexport default definePack({ name: 'mine', needs: { sessions: Sessions }, setup: () => undefined })\nexport const all = [createClient, packChecks]\n"
  )
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2022', '--types', 'node', 'mine.ts']
  const compiled = run(process.execPath, join(root, 'node_modules', 'typescript-5', 'bin', 'tsc'), ...options)
  assert.equal(compiled.stdout, '')
  const packs = run(process.execPath, main, 'packs', '--home', join(dir, 'home'))
  assert.match(packs.stdout, /^agent +not started/m, packs.stderr)
})
