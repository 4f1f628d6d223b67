/** `svc-code token`: the credential of a home. */
import { readToken, rotateToken } from '../../kernel/access/token.ts'
import { listInstances } from '../instances/index.ts'
import { CommandError } from './command-error.ts'
import type { Runner } from './commands.ts'
import { homeOf } from './deployment.ts'

export const token: Runner = async ({ verb, flags }, { env, out, err }) => {
  const home = homeOf(flags, env)
  if (verb === 'rotate') {
    out(`${await rotateToken(home)}\n`)
    return 0
  }
  const found = readToken(home)
  if (found === undefined) throw new CommandError(`${home} has no token yet: the first start of a server makes it (svc-code)`)
  out(`${found}\n`)
  if ((await listInstances(home)).length === 0) err(`no server runs on ${home}\n`)
  return 0
}
