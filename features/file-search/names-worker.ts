/** The thread that keeps the names of files: answers one query after the other. */
import { parentPort } from 'node:worker_threads'
import fuzzysort from 'fuzzysort'
import { inOrder } from '../../kernel/index.ts'
import { fuzzy, suggest } from './name-match.ts'
import { NameTree } from './name-tree.ts'
import type { NameQuery, NamesAnswer, NamesTask } from './names-task.ts'

/** Names of all trees together; the tree that was asked for longest ago goes first. */
const MAX_NAMES = 300_000

/** What the matcher remembers of queries is forgotten after so many. */
const QUERIES = 500
let queries = 0

const trees = new Map<string, NameTree>()

async function answer(query: NameQuery): Promise<Omit<NamesAnswer, 'id'>> {
  const key = `${query.follow_gitignore} ${query.root}`
  const tree = trees.get(key) ?? new NameTree(query.root, query.follow_gitignore)
  trees.delete(key)
  trees.set(key, tree)
  const names = await tree.names()
  let total = 0
  for (const each of trees.values()) total += each.size
  for (const [old, each] of trees) {
    if (total <= MAX_NAMES || each === tree) break
    total -= each.size
    trees.delete(old)
  }
  if (++queries % QUERIES === 0) fuzzysort.cleanup()
  const fits = await filterOf(query)
  const { items, truncated } = (query.mode === 'fuzzy' ? fuzzy : suggest)(names, query, fits)
  return { items, truncated: truncated || tree.cut }
}

/** The globs' code comes with the first query that has some. */
async function filterOf({ include, exclude }: NameQuery): Promise<((path: string) => boolean) | undefined> {
  if (include.length + exclude.length === 0) return undefined
  const { anyGlob, included } = await import('./globs.ts')
  const [wanted, unwanted] = [included({ include }), anyGlob(exclude)]
  return path => wanted(path) && !unwanted(path)
}

const port = parentPort
if (port) {
  const queued = inOrder()
  port.on('message', ({ id, query }: NamesTask) => {
    void queued(async () => {
      try {
        port.postMessage({ id, ...(await answer(query)) } satisfies NamesAnswer)
      } catch (error) {
        port.postMessage({ id, items: [], truncated: false, problem: String(error) } satisfies NamesAnswer)
      }
    })
  })
}
