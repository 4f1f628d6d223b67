/** An import of a computed name hides an edge from the linter. Only the command line, which loads the packs of operators, does it. */
import { finding, isTest, lineAt } from './tree.mjs'

export function checkComputedImports(tree) {
  const found = []
  for (const { path, text } of tree.files.values()) {
    if (isTest(path) || path.startsWith('features/cli/')) continue
    for (const { index, 1: name } of text.matchAll(/\bimport\((?!['{])(\w*)/g)) {
      if (name !== '' && text.includes(`const ${name} = '`)) continue // a variable, so that a missing optional dependency is no build error
      found.push(finding(path, lineAt(text, index), 'imports a computed name: the edge cannot be checked'))
    }
  }
  return found
}
