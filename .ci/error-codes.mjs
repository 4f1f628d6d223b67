/** Every errorSpec(...) has a code and a name of its own, written out where it is declared. */
import { finding } from './tree.mjs'

export function checkErrorCodes(tree) {
  const found = []
  const owners = new Map()
  for (const { path, tokens } of tree.files.values()) {
    if (path.startsWith('test/') || path.startsWith('.ci/') || path.endsWith('.test.ts')) continue
    for (let at = 0; at < tokens.length; at++) {
      if (tokens[at].text !== 'errorSpec' || tokens[at].kind !== 'word') continue
      if (tokens[at + 1]?.text !== '(' || tokens[at - 1]?.text === 'function') continue
      const { line } = tokens[at]
      const [name, , code, after] = tokens.slice(at + 2, at + 6)
      if (name?.kind !== 'string' || code?.kind !== 'number' || after?.text !== ',') {
        found.push(finding(path, line, 'errorSpec takes its name and code as literals'))
        continue
      }
      for (const key of [`name '${name.text}'`, `code ${code.text.replaceAll('_', '')}`]) {
        const owner = owners.get(key)
        if (owner) found.push(finding(path, line, `error ${key} belongs to ${owner}`))
        else owners.set(key, `${path}:${line}`)
      }
    }
  }
  return found
}
