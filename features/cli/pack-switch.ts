/** `svc-code pack load|unload|reload`: switches a pack of the running server, and says which others came, went or did not come back with it. */
import { ApiError, type Client, unwrap } from '../../client/index.ts'
import { nearest } from '../../kernel/index.ts'
import { type PackItem, PackMissing } from '../packs/index.ts'
import { CommandError } from './command-error.ts'
import { table } from './io.ts'
import { rowOf } from './pack-rows.ts'
import { neededServer } from './servers.ts'

/** Exit code 1 when the pack failed. */
export async function switchPack(
  verb: 'load' | 'unload' | 'reload',
  name: string,
  home: string,
  out: (text: string) => void
): Promise<number> {
  const { client } = await neededServer(home)
  try {
    const before = await packsOf(client)
    const { state, version, why } = rowOf(await switched(client, verb, name, before))
    const after = (await packsOf(client)).filter(item => item.name !== name)
    const wasActive = (item: PackItem) => before.some(one => one.name === item.name && one.state === 'Active')
    const went = after.filter(item => wasActive(item) && item.state !== 'Active')
    const came = after.filter(item => !wasActive(item) && item.state === 'Active')
    out(table([[name, [state, version].filter(Boolean).join(', ')], ...(why === '' ? [] : [['', why]])]))
    if (came.length > 0) out(`with it came ${came.map(item => item.name).join(', ')}\n`)
    if (went.length > 0) {
      out('with it went\n')
      out(table(went.map(item => [`  ${item.name}`, rowOf(item).why])))
    }
    return state === 'Failed' ? 1 : 0
  } finally {
    client.close()
  }
}

const packsOf = async ({ rest }: Client) => (await unwrap(rest.GET('/api/v1/packs'))).items as PackItem[]

async function switched({ rest }: Client, verb: 'load' | 'unload' | 'reload', name: string, known: readonly PackItem[]): Promise<PackItem> {
  const params = { path: { name } }
  const answer = await unwrap(
    verb === 'load'
      ? rest.POST('/api/v1/packs/{name}:load', { params })
      : verb === 'unload'
        ? rest.POST('/api/v1/packs/{name}:unload', { params })
        : rest.POST('/api/v1/packs/{name}:reload', { params })
  ).catch((error: Error) => {
    const missing = error instanceof ApiError && error.code === PackMissing.code
    const near = missing
      ? nearest(
          name,
          known.map(item => item.name)
        )
      : undefined
    throw new CommandError(`${error.message}${near ? `; did you mean ${near}?` : missing ? '; svc-code packs lists them' : ''}`)
  })
  return answer as PackItem
}
