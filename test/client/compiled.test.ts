/** What somebody else's project does with the client: compiles against it with its own compiler, and runs. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { startTestKernel } from '../../kernel/testing.ts'
import { fakeUpstream } from '../helpers/fake-upstream.ts'
import { modelConfig } from '../helpers/model-config.ts'
import { projectRoot } from '../helpers/project-root.ts'
import { freshDir } from '../helpers/temp.ts'

const root = fileURLToPath(projectRoot)

const program = `import { type Cursor, createClient, type Data, type EventFrame, unwrap, ApiError } from 'svc-code/client'

export interface Story {
  readonly version: string
  readonly sessions: readonly string[]
  readonly text: string
  readonly missing: number
  readonly cursor: Cursor | undefined
}

export async function story(url: string, token: string, cwd: string): Promise<Story> {
  const client = createClient({ url, token })
  const meta = await unwrap(client.rest.GET('/api/v1/meta'))
  const session = await unwrap(client.rest.POST('/api/v1/sessions', { body: { metadata: { cwd } } }))
  let text = ''
  let done: () => void = () => undefined
  const ended = new Promise<void>(resolve => {
    done = resolve
  })
  const watch = client.events.watch(session.id, {
    onEvent(event) {
      if (event.type === 'assistant.delta') text += event.payload.delta
      if (event.type === 'turn.ended' && event.payload.reason === 'completed') done()
      // @ts-expect-error a delta has no such field
      if (event.type === 'assistant.delta') text += event.payload.words ?? ''
    }
  })
  await watch.ready
  await unwrap(
    client.rest.POST('/api/v1/sessions/{session_id}/prompts', {
      params: { path: { session_id: session.id } },
      body: { content: [{ type: 'text', text: 'hello' }] }
    })
  )
  await ended
  const listed: Data<'/api/v1/sessions', 'get'> = await unwrap(client.rest.GET('/api/v1/sessions', { params: { query: { page_size: 10 } } }))
  const id = 'session_none'
  const missing = await unwrap(client.rest.GET('/api/v1/sessions/{session_id}', { params: { path: { session_id: id } } })).then(
    () => 0,
    (error: unknown) => (error instanceof ApiError ? error.code : -1)
  )
  // @ts-expect-error there is no such route
  client.rest.GET('/api/v1/nowhere').catch(() => undefined)
  const { cursor } = watch
  client.close()
  return { version: meta.server_version, sessions: listed.items.map(one => one.id), text, missing, cursor }
}

export function isFrame(frame: EventFrame): frame is Extract<EventFrame, { type: 'turn.started' }> {
  return frame.type === 'turn.started'
}
`

/** A project that has this package installed; `lib` is what its compiler knows of the platform. */
async function project(lib: readonly string[], types: readonly string[]): Promise<string> {
  const dir = await freshDir()
  await mkdir(join(dir, 'node_modules', '@types'), { recursive: true })
  await symlink(root, join(dir, 'node_modules', 'svc-code'))
  for (const name of types) await symlink(join(root, 'node_modules', '@types', name), join(dir, 'node_modules', '@types', name))
  const options = {
    target: 'ES2022',
    lib,
    types,
    module: 'NodeNext',
    moduleResolution: 'NodeNext',
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: false,
    skipDefaultLibCheck: true,
    outDir: 'out'
  }
  await writeFile(join(dir, 'package.json'), '{ "name": "theirs", "type": "module" }\n')
  await writeFile(
    join(dir, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: options, files: types.length > 0 ? ['story.ts', 'readme.ts'] : ['story.ts'] })
  )
  await writeFile(join(dir, 'story.ts'), program)
  const readme = await readFile(join(root, 'client', 'README.md'), 'utf8')
  await writeFile(join(dir, 'readme.ts'), /^```ts\n(.*?)^```/ms.exec(readme)?.[1] ?? '') // reads process.env, which browsers have not
  return dir
}

function compile(compiler: string, dir: string): string {
  const { stdout, status } = spawnSync(process.execPath, [join(root, 'node_modules', compiler, 'bin', 'tsc'), '-p', dir], {
    encoding: 'utf8'
  })
  return `${status} ${stdout}`
}

test('a program on the client compiles strictly with TypeScript 5.9 and 7, for Node and for browsers, and runs', async t => {
  const node = await project(['ES2022'], ['node'])
  const browser = await project(['ES2022', 'DOM', 'DOM.Iterable'], [])
  assert.equal(compile('typescript-5', browser), '0 ')
  assert.equal(compile('typescript', browser), '0 ')
  assert.equal(compile('typescript', node), '0 ')

  const upstream = await fakeUpstream(t, [[{ text: 'hello yourself', chunks: 3 }]])
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), modelConfig(upstream.url))
  const { url, token } = await startTestKernel(t, { packs: await loadDefaultPacks(), home, version: '9.9.9' })
  const { story } = await import(pathToFileURL(join(node, 'out', 'story.js')).href)
  const told = await story(url, token, home)
  assert.equal(told.text, 'hello yourself')
  assert.equal(told.version, '9.9.9')
  assert.equal(told.sessions.length, 1)
  assert.equal(told.missing, 40401)
  assert.ok(told.cursor.seq > 0)
})

test('a web page is bundled with the client without anything of Node', async () => {
  const dir = await project([], [])
  await writeFile(join(dir, 'page.js'), "import { createClient } from 'svc-code/client'\nglobalThis.page = createClient\n")
  const warnings: string[] = []
  const bundle = await rolldown({
    input: join(dir, 'page.js'),
    platform: 'browser',
    onLog: (_, { message }) => void warnings.push(message)
  })
  const { output } = await bundle.generate({ format: 'esm' })
  await bundle.close()
  assert.deepEqual(warnings, [])
  const imported = output.flatMap(chunk => (chunk.type === 'chunk' ? [...chunk.imports, ...chunk.dynamicImports] : []))
  assert.deepEqual(
    imported.filter(name => !output.some(({ fileName }) => fileName === name)),
    []
  )
  assert.ok(output.reduce((sum, chunk) => sum + (chunk.type === 'chunk' ? chunk.code.length : 0), 0) < 60_000)
})

test('the client door loads nothing of the server', async () => {
  const bundle = join(root, 'dist', 'bundle')
  const loaded = new Set<string>()
  const follow = async (file: string): Promise<void> => {
    if (loaded.has(file)) return
    loaded.add(file)
    const text = await readFile(join(bundle, file), 'utf8')
    for (const [, name] of text.matchAll(/(?:from|import) ?\(?"(\.\/[^"]+)"/g)) await follow(name!.slice(2))
  }
  await follow('client.mjs')
  assert.ok(loaded.size > 0)
  assert.deepEqual(
    [...loaded].filter(name => /^(base|kernel|features)/.test(name)),
    []
  )
  // As the package says: beside tests that load packs `import.meta.resolve` answers what packs get.
  assert.equal(dirname(createRequire(import.meta.url).resolve('svc-code/client')), bundle)
})
