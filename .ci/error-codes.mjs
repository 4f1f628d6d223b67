/** Every errorSpec(...) has a code and a name of its own, written out where it is declared. */
import { finding, isTest, lineAt } from './tree.mjs'

const call = /(?<!function )\berrorSpec\((?:\s*'([^']+)',\s*(\d[\d_]*)\s*,)?/g

export function checkErrorCodes(tree) {
  const found = []
  const owners = new Map()
  for (const { path, text } of tree.files.values()) {
    if (isTest(path)) continue
    for (const match of text.matchAll(call)) {
      const [, name, code] = match
      const line = lineAt(text, match.index)
      if (name === undefined) {
        found.push(finding(path, line, 'errorSpec takes its name and code as literals'))
        continue
      }
      for (const key of [`name '${name}'`, `code ${code.replaceAll('_', '')}`]) {
        const owner = owners.get(key)
        if (owner) found.push(finding(path, line, `error ${key} belongs to ${owner}`))
        else owners.set(key, `${path}:${line}`)
      }
    }
  }
  return found
}
