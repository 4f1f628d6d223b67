/** package.json lists no package that nothing uses. (The linter finds what is used and not listed, or listed in the wrong section.) */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { finding, isTest } from './tree.mjs'

export function checkDependencies(tree) {
  const { dependencies = {}, optionalDependencies = {}, devDependencies = {}, scripts = {} } = tree.pkg
  const files = [...tree.files.values()]
  const product = files.filter(({ path }) => !isTest(path))
  const tests = files.filter(({ path }) => isTest(path))
  const lineOf = packageLines(tree.root)
  const found = []
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
    if (isNamed(name, product)) continue
    const text = isNamed(name, tests) ? `${name} is used by tests only: a development dependency` : `${name} is not used`
    found.push(finding('package.json', lineOf(name), text))
  }
  for (const name of Object.keys(devDependencies)) {
    if (isNamed(name, tests) || isTyping(name, files) || isTool(tree, name, scripts)) continue
    found.push(finding('package.json', lineOf(name), `${name} is not used`))
  }
  return found
}

/** The package stands in quotes somewhere: in an import, a call, or a name that is imported later. A word in quotes elsewhere is none. */
function isNamed(name, files) {
  const named = new RegExp(`(from|import|\\(|[^=!]=)\\s*'${name}['/]`)
  return files.some(({ text }) => named.test(text))
}

/** Type packages count with the package they describe. */
function isTyping(name, files) {
  return name === '@types/node' || (name.startsWith('@types/') && isNamed(name.slice('@types/'.length), files))
}

/** A program that a script of package.json calls. */
function isTool(tree, name, scripts) {
  const bin = tree.lock?.packages?.[`node_modules/${name}`]?.bin ?? {}
  const words = Object.values(scripts).join(' ').split(/\s+/)
  return Object.keys(bin).some(program => words.includes(program))
}

function packageLines(root) {
  const lines = readFileSync(join(root, 'package.json'), 'utf8').split('\n')
  return name => lines.findIndex(line => line.includes(`"${name}":`)) + 1
}
