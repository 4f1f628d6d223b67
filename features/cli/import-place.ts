/** Where the import of a pack failed. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ownDirectory } from './version.ts'

/** `file:line` of a failed import, as far as it can be told. */
export async function placeOf(error: unknown, entry: string): Promise<string> {
  if (!(error instanceof Error)) return entry
  const importer = / imported from (\S+)/.exec(error.message)?.[1]
  if (importer !== undefined) return importPlace(importer, error.message)
  return frameOf(error.stack ?? '', entry) ?? (error instanceof SyntaxError ? await syntaxPlace(entry) : undefined) ?? entry
}

const frame = /(?:^|[\s(])(file:\/\/\S+?|\/[^\s():]+):(\d+)/gm

const pathOf = (file: string) => (file.startsWith('file:') ? fileURLToPath(file) : file)

/** The topmost frame of a stack; where that is ours (the kernel refuses what a file declares), the topmost one in the folder of the file. */
function frameOf(stack: string, entry: string): string | undefined {
  const frames = [...stack.matchAll(frame)].map(([, file = '', line]) => ({ path: pathOf(file).replace(/\?.*$/, ''), line }))
  const isOurs = frames[0]?.path.startsWith(ownDirectory())
  const found = isOurs ? frames.find(({ path }) => path.startsWith(`${dirname(entry)}/`)) : frames[0]
  return found && `${found.path}:${found.line}`
}

/** Where a file imports what the message says is missing. */
function importPlace(importer: string, message: string): string {
  const missing = basename(/Cannot find \w+ '([^']+)'/.exec(message)?.[1] ?? '')
  const lines = existsSync(importer) ? readFileSync(importer, 'utf8').split('\n') : []
  const at = lines.findIndex(line => line.includes(missing) && /\b(import|from)\b/.test(line))
  return at < 0 ? importer : `${importer}:${at + 1}`
}

/** Node tells the place of a syntax error only where it prints it: each file that the module imports by path is checked, until one fails. */
async function syntaxPlace(entry: string): Promise<string | undefined> {
  const files = new Set([entry])
  for (const file of files) {
    if (files.size > 100 || !existsSync(file)) continue
    const stderr = await new Promise<string>(done => execFile(process.execPath, ['--check', file], (_error, _out, text) => done(text)))
    const [, of = '', line] = /^(\S+?):(\d+)$/m.exec(stderr) ?? []
    if (basename(of) === basename(file)) return `${file}:${line}`
    for (const [, path = ''] of readFileSync(file, 'utf8').matchAll(/\bimport\b[^'"]*['"](\.[^'"]+)['"]|\bfrom\s*['"](\.[^'"]+)['"]/g)) {
      if (path !== '') files.add(resolve(dirname(file), path))
    }
  }
  return undefined
}
