/** Import edges: who may know whom. One function per kind of file; each answers why an edge is wrong, or undefined. */
import { posix } from 'node:path'
import { finding, isRoot, packOf } from './tree.mjs'

const kernelDoor = 'kernel/index.ts'
const kernelTesting = 'kernel/testing.ts'
const packDoor = /^features\/[^/]+\/index\.ts$/

/** Statements that only declare. Anything else at the left margin runs when the file is loaded. */
const declares = new Set(['import', 'export', 'const', 'let', 'function', 'async', 'class', 'abstract', 'interface', 'type', 'declare'])

export function checkImports(tree) {
  const found = []
  for (const file of tree.files.values()) {
    for (const edge of file.imports) {
      const why = edge.to === undefined ? computed(file.path) : wrongEdge(tree, file.path, edge)
      if (why !== undefined) found.push(finding(file.path, edge.line, why))
    }
  }
  return found
}

function computed(from) {
  return isRoot(from) || ['test', '.ci'].includes(area(from)) ? undefined : 'imports a computed name: the edge cannot be checked'
}

function wrongEdge(tree, from, edge) {
  const target = edge.to.file
  if (target !== undefined && !tree.files.has(target)) return `imports ${target}, which does not exist`
  if (area(from) === 'test') return undefined
  if (target !== undefined && (area(target) === 'test' || target.endsWith('.test.ts'))) return `imports the test file ${target}`
  if (area(from) === '.ci') {
    if (target !== undefined && area(target) !== '.ci') return `a check must not run what it checks, but imports ${target}`
    return undefined
  }
  if (area(from) === 'kernel') return fromKernel(from, edge)
  if (area(from) === 'examples') return fromExample(from, edge)
  if (isRoot(from)) return undefined
  const pack = packOf(from)
  if (pack === undefined) return `stands in features/ outside of a pack; only main.ts and default-packs.ts do`
  const name = from.slice(`features/${pack}/`.length)
  if (name === 'contract.ts') return fromContract(tree, pack, edge)
  if (name === 'index.ts') return fromIndex(tree, pack, edge)
  return fromDomain(pack, edge, name === 'pack.ts')
}

function fromKernel(from, { to }) {
  if (to.file === undefined || area(to.file) === 'kernel') return undefined
  return `${from === kernelDoor ? 'the kernel door' : 'the kernel'} must not know ${area(to.file)}, but imports ${to.file}`
}

function fromExample(from, { to }) {
  if (to.file === undefined || to.file === kernelDoor || to.file === kernelTesting || packDoor.test(to.file)) return undefined
  if (folder(from) === folder(to.file)) return undefined
  return `an example uses the public doors only, but imports ${to.file}`
}

function fromContract(tree, pack, { to }) {
  if (to.file === undefined) return `contract.ts is pure data, but imports ${to.npm ?? to.node}`
  if (to.file === kernelDoor || isForeignDoor(to.file, pack)) return undefined
  if (packOf(to.file) !== pack) return insteadOfDoor(to.file)
  return isPure(tree, to.file) ? undefined : `contract.ts is pure data, but imports ${to.file}, which is not`
}

function fromIndex(tree, pack, { to, kind }) {
  if (to.file === undefined || packOf(to.file) !== pack) return `index.ts shows own files only, but imports ${to.file ?? to.npm ?? to.node}`
  if (to.file.endsWith('/pack.ts')) return 'index.ts must not import pack.ts: neighbours would load the whole pack'
  if (kind === 'bare') return `index.ts imports ${to.file} for its side effects`
  const effect = sideEffect(tree, to.file)
  return effect ? `index.ts must be free of side effects, but ${effect} runs code when it is loaded` : undefined
}

function fromDomain(pack, { to }, isWiring) {
  if (to.file === undefined) return isWiring ? `pack.ts only wires; ${to.npm ?? to.node} belongs into a domain file` : undefined
  if (to.file === kernelDoor || isForeignDoor(to.file, pack)) return undefined
  if (packOf(to.file) !== pack) return insteadOfDoor(to.file)
  return to.file.endsWith('/pack.ts') ? 'pack.ts is imported by the composition root only' : undefined
}

function insteadOfDoor(target) {
  if (area(target) === 'kernel') return `imports ${target}; packs use ${kernelDoor}`
  const pack = packOf(target)
  return pack === undefined
    ? `imports ${target}, which is no part of a pack`
    : `imports ${target}; other packs are reached by features/${pack}/index.ts`
}

function isForeignDoor(target, pack) {
  return packDoor.test(target) && packOf(target) !== pack && packOf(target) !== undefined
}

/** Pure data: imports nothing but the kernel's door, packs' doors and own files that are pure themselves. */
function isPure(tree, path, seen = new Set()) {
  if (path.endsWith('/pack.ts')) return false
  if (seen.has(path)) return true
  seen.add(path)
  return (tree.files.get(path)?.imports ?? []).every(({ to, kind }) => {
    if (to?.file === undefined || kind !== 'static') return false
    if (to.file === kernelDoor || isForeignDoor(to.file, packOf(path))) return true
    return packOf(to.file) === packOf(path) && isPure(tree, to.file, seen)
  })
}

/** `file:line` of the first statement that runs at load time, in the file or in what it loads of its own pack. */
function sideEffect(tree, path, seen = new Set()) {
  if (seen.has(path)) return undefined
  seen.add(path)
  const file = tree.files.get(path)
  if (!file) return undefined
  const bare = file.imports.find(one => one.kind === 'bare')
  if (bare) return `${path}:${bare.line}`
  const running = file.tokens.find(token => token.column === 0 && token.kind === 'word' && !declares.has(token.text))
  if (running) return `${path}:${running.line}`
  for (const { to, type, kind } of file.imports) {
    if (type || kind !== 'static' || to?.file === undefined || packOf(to.file) !== packOf(path)) continue
    const effect = sideEffect(tree, to.file, seen)
    if (effect) return effect
  }
  return undefined
}

function area(path) {
  return path.slice(0, path.indexOf('/'))
}

function folder(path) {
  return posix.dirname(path).split('/').slice(0, 2).join('/')
}
