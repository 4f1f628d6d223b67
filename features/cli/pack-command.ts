/** `svc-code pack`: an author's day (new, check, test, dev) and an operator's (add, remove, load, unload, reload). */
import { unwrap } from '../../client/index.ts'
import type { PackItem } from '../packs/index.ts'
import { CommandError } from './command-error.ts'
import type { Runner } from './commands.ts'
import { homeOf } from './deployment.ts'
import { details, type Row, rowOf } from './pack-rows.ts'
import { neededServer } from './servers.ts'

export const pack: Runner = async (line, io) => {
  const { verb, words, flags } = line
  const [word = '.'] = words
  switch (verb) {
    case 'new':
      return await (await import('./pack-new.ts')).newPack(word, io)
    case 'check':
      return await (await import('./pack-check.ts')).checkPack(word, io)
    case 'test':
      return await (await import('./pack-check.ts')).testPack(word, io)
    case 'dev':
      return await (await import('./pack-dev.ts')).devPack(word, flags, io)
    case 'add':
      return await (await import('./pack-add.ts')).addPack(word, flags, io)
    case 'remove':
      return await (await import('./pack-add.ts')).removePack(word, flags, io)
    default:
      return await switchPack(verb as 'load' | 'unload' | 'reload', word, homeOf(flags, io.env), io.out)
  }
}

/** Switches a pack of the running server; exit code 1 when it failed. */
async function switchPack(verb: 'load' | 'unload' | 'reload', name: string, home: string, out: (text: string) => void): Promise<number> {
  const { client } = await neededServer(home)
  const params = { path: { name } }
  const answer = await unwrap(
    verb === 'load'
      ? client.rest.POST('/api/v1/packs/{name}:load', { params })
      : verb === 'unload'
        ? client.rest.POST('/api/v1/packs/{name}:unload', { params })
        : client.rest.POST('/api/v1/packs/{name}:reload', { params })
  ).catch((error: Error) => {
    throw new CommandError(error.message)
  })
  const row: Row = rowOf(answer as PackItem)
  out(details(row))
  return row.state === 'Failed' ? 1 : 0
}
