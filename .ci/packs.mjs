/** Every pack has a public face, a README and tests. */
import { finding } from './tree.mjs'

export function checkPacks(tree) {
  const found = []
  for (const [name, folder] of tree.packs) {
    for (const needed of ['index.ts', 'README.md']) {
      if (!tree.paths.includes(`${folder}/${needed}`)) found.push(finding(`${folder}/pack.ts`, 1, `the pack has no ${needed}`))
    }
    const tests = tree.paths.filter(path => path.startsWith(`test/features/${name}/`) && path.endsWith('.test.ts'))
    const some = tests.some(path => tree.files.get(path).tokens.some((token, at, all) => isTestCall(token, all[at + 1])))
    if (!some) found.push(finding(`${folder}/pack.ts`, 1, `there is no test in test/features/${name}/`))
  }
  return found
}

/** `test(` or `it(`, or the call of a shared suite, which brings its own tests. */
function isTestCall(token, next) {
  return token.kind === 'word' && next?.text === '(' && /^(test|it)$|Suite$|Conformance$/.test(token.text)
}
