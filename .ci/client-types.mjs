/**
 * The types of the client, made from the documents as the full server serves them: `node .ci/client-types.mjs` compares (exit code 1 when
 * they differ), `--write` puts them in. Needs the build.
 */
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { argv } from 'node:process'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { clientTypes } from './client-declarations.mjs'

const path = 'client/types.ts'

/** The findings of the check: one when the types differ. A tree without a client, and one that was not built, has none. */
export async function checkClientTypes({ root }) {
  const file = join(root, path)
  if (!existsSync(file) || !existsSync(join(root, 'dist', 'features', 'default-packs.js'))) return []
  if ((await readFile(file, 'utf8')) === (await freshTypes(root))) return []
  const text = 'differs from the documents of the server; run: npm run build && node .ci/client-types.mjs --write'
  return [{ file: path, line: 1, text }]
}

async function freshTypes(root) {
  const { openapi, asyncapi } = await documents(root)
  return await clientTypes(openapi, asyncapi)
}

/** Both documents, asked from a server on a temporary home. */
async function documents(root) {
  const compiled = file => import(pathToFileURL(join(root, 'dist', file)).href)
  const { loadDefaultPacks } = await compiled('features/default-packs.js')
  const { createKernel } = await compiled('kernel/kernel.js')
  const home = await mkdtemp(join(tmpdir(), 'svc-code-client-'))
  try {
    const kernel = await createKernel({ home, packs: await loadDefaultPacks(), port: 0, log: { level: 'silent' } })
    const { url } = await kernel.start()
    try {
      const token = (await readFile(join(home, 'server.token'), 'utf8')).trim()
      const read = async name => await (await fetch(`${url}/${name}.json`, { headers: { authorization: `Bearer ${token}` } })).json()
      return { openapi: await read('openapi'), asyncapi: await read('asyncapi') }
    } finally {
      await kernel.stop()
    }
  } finally {
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const root = dirname(dirname(fileURLToPath(import.meta.url)))
  if (argv.includes('--write')) await writeFile(join(root, path), await freshTypes(root))
  else {
    for (const { file, line, text } of await checkClientTypes({ root })) {
      process.stderr.write(`${file}:${line} ${text}\n`)
      process.exitCode = 1
    }
  }
}
