/** TypeScript packs where Node does not erase types itself (before 22.18): the compiler that the pack, or this installation, has at hand. */
import { createRequire } from 'node:module'
import { join } from 'node:path'

type Erase = (text: string, file: string) => string

interface Compiler {
  readonly transpileModule?: (
    text: string,
    options: object
  ) => { readonly outputText: string; readonly diagnostics?: readonly { readonly start?: number; readonly messageText: unknown }[] }
}

const options = { target: 'ES2022', module: 'ESNext', verbatimModuleSyntax: true, inlineSourceMap: true, removeComments: false }

/** Does Node read TypeScript as it is? */
export const native = 'typescript' in process.features && Boolean(process.features.typescript)

/** Undefined when there is no compiler. What it answers throws a SyntaxError whose message begins with the file and the line. */
export function eraserFor(file: string): Erase | undefined {
  for (const from of [file, join(process.cwd(), 'package.json'), import.meta.url]) {
    for (const name of ['typescript', 'typescript-5']) {
      const compiler = tried(from, name)
      const transpile = compiler?.transpileModule
      if (!transpile) continue
      return (text, fileName) => {
        const { outputText, diagnostics = [] } = transpile(text, { compilerOptions: options, fileName, reportDiagnostics: true })
        const [fault] = diagnostics
        if (fault) throw new SyntaxError(`${fileName}:${text.slice(0, fault.start ?? 0).split('\n').length}: ${String(fault.messageText)}`)
        return outputText
      }
    }
  }
  return undefined
}

function tried(from: string, name: string): Compiler | undefined {
  try {
    return createRequire(from)(name) as Compiler
  } catch {
    return undefined // not installed there, or without an interface (TypeScript 7)
  }
}
