/** Processes of packs and the server: they come with it, follow its configuration, and go with it, however it ends. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { RestClient } from '../../../../kernel/testing/client.ts'
import { serve } from '../../../helpers/cli.ts'
import { packFile } from '../../../helpers/isolated.ts'
import { freshDir } from '../../../helpers/temp.ts'

const file = packFile(`
const act = defineRoute({ method: 'POST', path: '/api/v1/act/{what}', summary: 'Act', params: Type.Object({ what: Type.String() }), data: Type.Unknown() })
export default definePack({
  name: 'wild',
  setup(ctx) {
    ctx.route(act, ({ params }) => {
      if (params.what === 'loop') for (;;);
      return { pid: process.pid, secret: process.env.SECRET_OF_TEST ?? null }
    })
  }
})`)

const shown = (pid: number) => readFileSync(`/proc/${pid}/environ`, 'latin1')

test('a server has its packs in processes of their own, which end with it, also when it is killed and they loop', async t => {
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), `[packs]\nload = [${JSON.stringify(await file)}]\nisolate = ["wild"]\n`)
  process.env.SECRET_OF_TEST = 'hush'
  const server = await serve(t, home, '--port', '0').finally(() => delete process.env.SECRET_OF_TEST)
  const rest = new RestClient(server.url, server.token)
  t.after(() => rest.close())
  const { pid, secret } = (await rest.json('POST', '/api/v1/act/tell')).data as { pid: number; secret: string }
  assert.notEqual(pid, server.child.pid)
  assert.equal(secret, 'hush')
  assert.ok(!shown(pid).includes('hush'), 'the system shows no secret of it')
  const items = ((await rest.json('GET', '/api/v1/packs')).data as { items: { name: string; process: { pid: number } | null }[] }).items
  assert.equal(items.find(item => item.name === 'wild')?.process?.pid, pid)
  assert.equal(items.filter(item => item.process !== null).length, 1)

  void rest.json('POST', '/api/v1/act/loop').catch(() => undefined)
  await rest.json('GET', '/api/v1/healthz')
  server.child.kill('SIGKILL')
  await once(server.child, 'close')

  await gone(pid)
})

test('who looks at a pack and takes it nowhere ends without waiting for its process', { timeout: 15_000 }, async () => {
  const { href } = new URL('../../../../features/cli/isolation/isolated-pack.js', import.meta.url)
  const looking = `
    const { loadIsolated } = await import(${JSON.stringify(href)})
    const [pack] = await loadIsolated({ spec: ${JSON.stringify(await file)}, from: '/' }, { memory_mb: 512, hang_s: 5, restarts: 0 })
    console.log(pack.name)`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', looking])
  assert.equal(stdout, 'wild\n')
})

/** Resolves when there is no such process any more; the time limit of the test is the limit. */
async function gone(pid: number): Promise<void> {
  for (;;) {
    try {
      process.kill(pid, 0)
    } catch {
      return
    }
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}
