/** Every pack has a public face, a README and tests; nothing else lies loose in features/. */
import { finding } from './tree.mjs'

/** `test(` or `it(`, or the call of a shared suite, which brings its own tests. */
const testCall = /\b(?:test|it|\w*Suite|\w*Conformance)\(/

export function checkPacks(tree) {
  const found = []
  for (const name of tree.packs) {
    const folder = `features/${name}`
    for (const needed of ['index.ts', 'README.md']) {
      if (!tree.paths.includes(`${folder}/${needed}`)) found.push(finding(`${folder}/pack.ts`, 1, `the pack has no ${needed}`))
    }
    const tests = tree.paths.filter(path => path.startsWith(`test/features/${name}/`) && path.endsWith('.test.ts'))
    if (!tests.some(path => testCall.test(tree.files.get(path).text))) {
      found.push(finding(`${folder}/pack.ts`, 1, `there is no test in test/features/${name}/`))
    }
  }
  for (const path of tree.paths) {
    if (!/^features\/[^/]+\.ts$/.test(path) || ['features/main.ts', 'features/default-packs.ts'].includes(path)) continue
    found.push(finding(path, 1, 'stands in features/ outside of a pack; only main.ts and default-packs.ts do'))
  }
  return found
}
