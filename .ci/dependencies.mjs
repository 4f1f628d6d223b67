/** package.json lists exactly the packages that are used, each in the section it belongs to. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { finding } from './tree.mjs'

export function checkDependencies(tree) {
  const { dependencies = {}, optionalDependencies = {}, devDependencies = {}, scripts = {} } = tree.pkg
  const shipped = new Set([...Object.keys(dependencies), ...Object.keys(optionalDependencies)])
  const dev = new Set(Object.keys(devDependencies))
  const usedByProduct = new Set()
  const usedByTests = new Set()
  const found = []
  for (const { path, imports, tokens } of tree.files.values()) {
    const isTest = path.startsWith('test/') || path.startsWith('.ci/') || path.endsWith('.test.ts')
    for (const name of resolved(tokens)) (isTest ? usedByTests : usedByProduct).add(name)
    for (const { to, line } of imports) {
      if (to?.npm === undefined) continue
      ;(isTest ? usedByTests : usedByProduct).add(to.npm)
      if (shipped.has(to.npm) || (isTest && dev.has(to.npm))) continue
      found.push(finding(path, line, dev.has(to.npm) ? `${to.npm} is a development dependency only` : `${to.npm} is not in package.json`))
    }
  }
  const lineOf = packageLines(tree.root)
  for (const name of shipped) {
    if (usedByProduct.has(name)) continue
    const text = usedByTests.has(name) ? `${name} is used by tests only: a development dependency` : `${name} is not used`
    found.push(finding('package.json', lineOf(name), text))
  }
  for (const name of dev) {
    if (usedByTests.has(name) || isTyping(name, [...usedByProduct, ...usedByTests]) || isTool(tree, name, scripts)) continue
    found.push(finding('package.json', lineOf(name), `${name} is not used`))
  }
  return found
}

/** Packages that are named in a call: `require('x/file.json')`, `resolve('x')`. They count as used, nothing more. */
function resolved(tokens) {
  return tokens
    .filter((token, at) => token.kind === 'string' && tokens[at - 1]?.text === '(' && /^[@a-z]/.test(token.text))
    .map(token =>
      token.text
        .split('/')
        .slice(0, token.text.startsWith('@') ? 2 : 1)
        .join('/')
    )
}

/** Type packages count with the package they describe. */
function isTyping(name, used) {
  if (name === '@types/node') return true
  return name.startsWith('@types/') && used.includes(name.slice('@types/'.length))
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
