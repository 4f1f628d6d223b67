import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { serve } from '../../helpers/cli.ts'
import { projectRoot } from '../../helpers/project-root.ts'
import { freshDir } from '../../helpers/temp.ts'

test('whichever way a pack names a door, it gets the instance that runs', async t => {
  const home = await freshDir()
  const pack = join(home, 'same.mjs')
  await writeFile(
    pack,
    `import * as named from 'svc-code/kernel'
import * as file from '${new URL('dist/kernel/index.js', projectRoot).href}'
import { createClient } from 'svc-code/client'
import { Sessions } from 'svc-code/features/sessions'
import { Sessions as SessionsOfFile } from '${new URL('dist/features/sessions/index.js', projectRoot).href}'
const { AppError, definePack, defineRoute, KernelInfo, SessionMissing, Type, ValidationFailed } = named
const same = defineRoute({ method: 'GET', path: '/api/v1/same', summary: 'Same', data: Type.Object({ kernel: Type.Boolean(), pack: Type.Boolean() }) })
const refuse = defineRoute({ method: 'GET', path: '/api/v1/refuse', summary: 'Refuse', data: Type.Null() })
export default definePack({
  name: 'same',
  needs: { kernel: KernelInfo, sessions: Sessions },
  setup(ctx) {
    ctx.route(same, () => ({ kernel: named.AppError === file.AppError, pack: Sessions === SessionsOfFile && createClient !== undefined }))
    ctx.route(refuse, () => { throw new AppError(ValidationFailed, { message: 'no' }) })
  }
})
`
  )
  const { url, token } = await serve(t, home, '--port', '0', '--pack', pack)
  const get = async (path: string) =>
    (await fetch(`${url}/api/v1/${path}`, { headers: { authorization: `Bearer ${token}` } })).json() as Promise<{
      code: number
      data: unknown
    }>

  assert.deepEqual((await get('same')).data, { kernel: true, pack: true })
  assert.equal((await get('refuse')).code, 40001)
})
