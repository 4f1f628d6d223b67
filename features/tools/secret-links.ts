/** Further names (hard links) of the files in which the server's home keeps secrets: no path tells that they lead there. */
import type { Stats } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { lookAt, lookAtAll, yieldToLoop } from '../../kernel/index.ts'

const files = ['config.toml', 'mcp.json', 'server.token', 'server/channel.secret']

/** Whether the path is another name of one of them; `home` without links. */
export async function isSecretLink(path: string, home: string): Promise<boolean> {
  const found = await lookAt(path)
  return found !== undefined && isLinked(found) && (await linkedSecrets(home)).has(idOf(found))
}

/** Which of the paths are; nothing is asked of them where no secret has another name, as nearly always. `linked`: see `linkedSecrets`. */
export async function secretLinks(paths: readonly string[], home: string, linked = linkedSecrets(home)): Promise<ReadonlySet<string>> {
  const secrets = await linked
  if (secrets.size === 0) return secrets
  const own = new Set<string>()
  for (const path of paths) {
    const others = yieldToLoop()
    if (others) await others
    const found = await lookAt(path)
    if (found && secrets.has(idOf(found))) own.add(path)
  }
  return own
}

/** Those that have another name: asked once by who looks at many paths one after the other. */
export async function linkedSecrets(home: string): Promise<ReadonlySet<string>> {
  const logins = await readdir(join(home, 'credentials')).catch(() => []) // nobody has logged in
  const found = await lookAtAll([...files, ...logins.map(name => join('credentials', name))].map(name => join(home, name)))
  return new Set(found.flatMap(each => (each && isLinked(each) ? [idOf(each)] : [])))
}

const isLinked = (found: Stats) => found.isFile() && found.nlink > 1

const idOf = ({ dev, ino }: Stats) => `${dev} ${ino}`
