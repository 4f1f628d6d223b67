/** `svc-code pack`: an author's day (new, check, test, dev) and an operator's (add, remove, load, unload, reload). */
import type { Runner } from './commands.ts'
import { homeOf } from './deployment.ts'

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
      return await (await import('./pack-switch.ts')).switchPack(verb as 'load' | 'unload' | 'reload', word, homeOf(flags, io.env), io.out)
  }
}
