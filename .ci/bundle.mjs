/**
 * Bundles the server into dist/bundle: some 30 files load in less than half the time of 400. What runs is this bundle: `npm start`, the installed
 * command, and the doors in package.json, so that a third-party pack meets the very kernel that runs. Packs stay apart: a disabled one is
 * never read. All files lie flat, because modules find their neighbours (workers, package.json) by `import.meta.url`.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { rolldown } from 'rolldown'

const packs = readdirSync('features').filter(name => existsSync(join('features', name, 'pack.ts')))

/** What every server loads: the kernel and the public faces of the packs, with all that they import. One file, so that each has one instance. */
const isBase = id => /^(?:kernel\/(?!testing)[^.]*|features\/[^/]+\/index)\.ts$/.test(relative(process.cwd(), id).replaceAll('\\', '/'))

/** A file of ASCII alone is read and compiled as it is; one other character doubles what V8 holds of it. */
function inAscii(file) {
  if (file.type === 'chunk') file.code = file.code.replace(/[^\0-\x7f]/g, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

rmSync(join('dist', 'bundle'), { recursive: true, force: true })
const bundle = await rolldown({
  input: {
    main: 'features/main.ts',
    kernel: 'kernel/index.ts',
    'kernel-testing': 'kernel/testing.ts',
    client: 'client/index.ts',
    'resolve-self': 'features/cli/resolve-self.ts',
    'walker-worker': 'features/tools-files/walker-worker.ts',
    'extract-worker': 'features/tools-web/extract-worker.ts',
    'recode-worker': 'features/media/recode-worker.ts',
    ...Object.fromEntries(packs.map(name => [`features-${name}`, `features/${name}/index.ts`]))
  },
  platform: 'node',
  // Native parts and programs are found beside their own package.json.
  external: ['level', '@vscode/ripgrep', 'node-pty'],
  logLevel: 'warn'
})
await bundle.write({
  dir: join('dist', 'bundle'),
  format: 'esm',
  sourcemap: true,
  comments: false,
  plugins: [{ name: 'ascii', generateBundle: (_, files) => Object.values(files).forEach(inAscii) }],
  entryFileNames: '[name].js',
  chunkFileNames: '[name]-[hash].js',
  codeSplitting: { groups: [{ name: 'base', test: isBase }] }
})
await bundle.close()
