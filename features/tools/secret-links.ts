/** Further names (hard links) of the files in which the server's home keeps secrets: no path tells that they lead there. */
import type { Stats } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { lookAt, lookAtAll } from '../../kernel/index.ts'

const files = ['config.toml', 'mcp.json', 'server.token', 'server/channel.secret']

/** Whether the path is another name of one of them; `home` without links. */
export async function isSecretLink(path: string, home: string): Promise<boolean> {
  const found = await lookAt(path)
  return found !== undefined && isLinked(found) && (await linkedSecrets(home)).has(idOf(found))
}

/** Which of the paths are; nothing is asked of them where no secret has another name, as nearly always. */
export async function secretLinks(paths: readonly string[], home: string): Promise<ReadonlySet<string>> {
  const secrets = await linkedSecrets(home)
  if (secrets.size === 0) return secrets
  const found = await lookAtAll(paths)
  return new Set(paths.filter((_, at) => found[at] && secrets.has(idOf(found[at]))))
}

async function linkedSecrets(home: string): Promise<ReadonlySet<string>> {
  const logins = await readdir(join(home, 'credentials')).catch(() => []) // nobody has logged in
  const found = await lookAtAll([...files, ...logins.map(name => join('credentials', name))].map(name => join(home, name)))
  return new Set(found.flatMap(each => (each && isLinked(each) ? [idOf(each)] : [])))
}

const isLinked = (found: Stats) => found.isFile() && found.nlink > 1

const idOf = ({ dev, ino }: Stats) => `${dev} ${ino}`
