/**
 * Every pack has a public face, a README that names no file which is not there, and tests; a folder of a pack with a door is entered by it;
 * nothing else lies loose in features/.
 */
import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { finding, isTest, lineAt } from './tree.mjs'

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
  return [...found, ...namedInVain(tree), ...pastDoors(tree)]
}

/** Files that the README of a folder names and that are not there. */
function namedInVain({ root, paths }) {
  return paths
    .filter(path => /^(kernel|features|client)\/(.*\/)?README\.md$/.test(path))
    .flatMap(readme => {
      const text = readFileSync(join(root, readme), 'utf8')
      return [...text.matchAll(/(?<![\w/.<>-])[a-z][\w-]*(?:\/[\w-]+)*\.ts\b/g)]
        .filter(({ 0: name }) => !paths.some(path => path === name || path.endsWith(`/${name}`)))
        .map(({ 0: name, index }) => finding(readme, lineAt(text, index), `names ${name}, which is not there`))
    })
}

/** Imports that pass by the `index.ts` of a folder within a pack. */
function pastDoors({ files, paths }) {
  const rooms = paths.flatMap(path => /^(features\/[^/]+\/[^/]+\/)index\.ts$/.exec(path)?.[1] ?? [])
  return [...files.values()].flatMap(({ path, text }) => {
    const imported = isTest(path) ? [] : [...text.matchAll(/(?:\bfrom |\bimport\(?)\s*'(\.[^']+)'/g)]
    return imported.flatMap(({ index, 1: name }) => {
      const target = posix.join(posix.dirname(path), name)
      const room = rooms.find(dir => target.startsWith(dir) && !path.startsWith(dir))
      return room === undefined || target === `${room}index.ts`
        ? []
        : [finding(path, lineAt(text, index), `${room} is reached by its index.ts only`)]
    })
  })
}
