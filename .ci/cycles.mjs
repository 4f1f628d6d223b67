/** Cycles between packs over imports that exist at run time. A type import ties nothing together. */
import { finding, packOf } from './tree.mjs'

export function checkCycles(tree) {
  const edges = packEdges(tree)
  const found = []
  const reported = new Set()
  for (const start of edges.keys()) {
    const cycle = shortestCycle(edges, start)
    if (!cycle) continue
    const key = [...cycle].sort().join(' ')
    if (reported.has(key)) continue
    reported.add(key)
    const text = `packs import each other in a circle: ${[...cycle, cycle[0]].join(' -> ')}`
    for (let at = 0; at < cycle.length; at++) {
      const place = edges.get(cycle[at]).get(cycle[(at + 1) % cycle.length])
      found.push(finding(place.file, place.line, text))
    }
  }
  return found
}

/** Pack to pack, with the first place of each edge. */
function packEdges(tree) {
  const edges = new Map()
  for (const file of tree.files.values()) {
    const from = packOf(file.path)
    if (from === undefined) continue
    if (!edges.has(from)) edges.set(from, new Map())
    for (const { to, type, line } of file.imports) {
      const target = to?.file === undefined ? undefined : packOf(to.file)
      if (type || target === undefined || target === from || edges.get(from).has(target)) continue
      edges.get(from).set(target, { file: file.path, line })
    }
  }
  return edges
}

function shortestCycle(edges, start) {
  const paths = [[start]]
  const seen = new Set()
  for (let path = paths.shift(); path !== undefined; path = paths.shift()) {
    for (const next of edges.get(path.at(-1))?.keys() ?? []) {
      if (next === start) return path
      if (seen.has(next)) continue
      seen.add(next)
      paths.push([...path, next])
    }
  }
  return undefined
}
