/** Notes to oneself do not stay in the sources: an open end is an issue or it is finished. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { finding } from './tree.mjs'

const open = new RegExp(`\\b(${['TO', 'FIX', 'XX'].map((half, at) => half + ['DO', 'ME', 'X'][at]).join('|')})\\b`)

export function checkWords(tree) {
  const found = []
  const texts = ['README.md', ...tree.paths].filter(path => /\.(ts|mjs|md|json)$|\/run$/.test(path) && existsSync(join(tree.root, path)))
  for (const path of texts) {
    const lines = (tree.files.get(path)?.text ?? readFileSync(join(tree.root, path), 'utf8')).split('\n')
    lines.forEach((line, at) => {
      const word = open.exec(line)?.[1]
      if (word !== undefined) found.push(finding(path, at + 1, `says ${word}`))
    })
  }
  return found
}
