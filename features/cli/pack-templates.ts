/** The files of a new pack. */

/** Texts by file name. `from`: where npm finds svc-code, when the directory does not. */
export function templates(name: string, from?: string): Readonly<Record<string, string>> {
  const word = name.replaceAll('-', '_')
  const type = name.replaceAll(/(?:^|-)([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
  return {
    'package.json': `${JSON.stringify(manifest(name, from), undefined, 2)}\n`,
    'tsconfig.json': `${JSON.stringify(compiler, undefined, 2)}\n`,
    '.gitignore': 'node_modules\ndist\n',
    'README.md': readme(name, word),
    'pack.ts': source(name, word, type),
    'pack.test.ts': tests(type)
  }
}

const manifest = (name: string, from: string | undefined) => ({
  name: `svc-code-${name}`,
  version: '0.1.0',
  description: 'A pack of svc-code',
  type: 'module',
  exports: './dist/pack.js',
  files: ['dist', 'README.md'],
  scripts: {
    build: 'tsc -p .',
    prepack: 'npm run build',
    check: 'svc-code pack check',
    test: 'svc-code pack test',
    dev: 'svc-code pack dev'
  },
  peerDependencies: { 'svc-code': '>=0.1.0' },
  peerDependenciesMeta: { 'svc-code': { optional: true } }, // whoever runs the pack has it; npm need not find one
  devDependencies: { '@types/node': '^20.19.0', ...(from === undefined ? {} : { 'svc-code': from }), typescript: '~5.9.3' }
})

const compiler = {
  compilerOptions: {
    target: 'ES2022',
    module: 'NodeNext',
    moduleResolution: 'NodeNext',
    strict: true,
    verbatimModuleSyntax: true,
    erasableSyntaxOnly: true,
    rewriteRelativeImportExtensions: true,
    skipLibCheck: true,
    types: ['node'],
    outDir: 'dist'
  },
  files: ['pack.ts']
}

const source = (
  name: string,
  word: string,
  type: string
) => `/** Keeps notes, and says so: a route to add one, a route to list them, an event, an option. */
import { AppError, defineEvent, definePack, defineRoute, defineStore, errorSpec, named, Type } from 'svc-code/kernel'

const Note = named(
  '${type}Note',
  Type.Object({ id: Type.String(), text: Type.String({ minLength: 1, maxLength: 1000 }), created_at: Type.String() })
)

export const ${type}Full = errorSpec('${word}_full', 40980, 'there are too many notes')

export const addNote = defineRoute({
  method: 'POST',
  path: '/api/v1/${name}',
  summary: 'Add a note',
  body: Type.Object({ text: Note.properties.text }),
  data: Note,
  errors: [${type}Full]
})
export const listNotes = defineRoute({
  method: 'GET',
  path: '/api/v1/${name}',
  summary: 'Notes, the oldest first',
  data: Type.Object({ items: Type.Array(Note) })
})
export const noteAdded = defineEvent({ type: 'event.${word}.added', scope: 'global', durable: true, payload: Note })

const notesStore = defineStore({ name: 'notes', value: Note })

export default definePack({
  name: '${name}',
  description: 'Keeps notes and tells when one is added',
  config: Type.Object({
    max_notes: Type.Integer({ minimum: 1, maximum: 10_000, default: 100, description: 'How many notes are kept at most' })
  }),
  setup(ctx) {
    const notes = ctx.store(notesStore)
    const emitAdded = ctx.event(noteAdded)

    ctx.route(addNote, async ({ body: { text } }) => {
      if ((await notes.values()).length >= ctx.config.max_notes) throw new AppError(${type}Full)
      const note = { id: ctx.newId(), text, created_at: ctx.now().toISOString() }
      await notes.put(note.id, note)
      emitAdded(note)
      return note
    })
    ctx.route(listNotes, async () => ({ items: await notes.values() }))
  }
})
`

const tests = (type: string) => `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestKernel } from 'svc-code/kernel/testing'
import pack, { addNote, listNotes, noteAdded, ${type}Full } from './pack.ts'

test('a note is kept, listed and told once', async t => {
  const { call, events } = await startTestKernel(t, { packs: [pack] })

  const added = await call(addNote, { body: { text: 'buy tea' } })

  assert.equal(added.code, 0)
  assert.deepEqual((await call(listNotes)).data.items, [added.data])
  assert.deepEqual(events, [{ type: noteAdded.type, payload: added.data }])
})

test('the option is a limit, and an empty note is refused', async t => {
  const { call, events } = await startTestKernel(t, { packs: [pack], config: { [pack.name]: { max_notes: 1 } } })

  assert.equal((await call(addNote, { body: { text: '' } })).code, 40001)
  assert.equal((await call(addNote, { body: { text: 'one' } })).code, 0)
  assert.equal((await call(addNote, { body: { text: 'two' } })).code, ${type}Full.code)
  assert.equal(events.length, 1)
})
`

const readme = (name: string, word: string) => `# ${name}

A pack of svc-code.

| Route | |
|---|---|
| \`POST /api/v1/${name}\` | add a note |
| \`GET /api/v1/${name}\` | notes, the oldest first |

**Event** \`event.${word}.added\`. **Error** 40980 \`${word}_full\`. **Option** \`max_notes\` (default 100), in \`[packs.config.${name}]\` of config.toml.

\`\`\`sh
npm install
npx svc-code pack test      # hygiene checks and pack.test.ts
npx svc-code pack dev       # a server with the pack, swapped at every change
npm pack                    # svc-code-${name}-0.1.0.tgz, for: npx svc-code pack add ./svc-code-${name}-0.1.0.tgz
\`\`\`
`
