/** Who permits tool calls: one authority that answered, or nobody and then nothing runs. */
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Permissions } from '../../features/permissions/index.ts'
import { ToolAuthority, ToolHooks, Tools } from '../../features/tools/index.ts'
import { definePack, type Pack } from '../../kernel/index.ts'
import { stub } from '../../kernel/testing.ts'
import { scripted } from '../features/tools/fakes.ts'
import { run } from '../helpers/cli.ts'
import { conversation } from '../helpers/conversation.ts'
import { freshDir } from '../helpers/temp.ts'

/** A pack with a tool that must not run. */
function guarded(): { readonly pack: Pack; readonly ran: () => number } {
  let ran = 0
  const danger = scripted({ name: 'Danger', run: () => ({ output: `ran ${++ran}` }) })
  return { pack: definePack({ name: 'danger', setup: ctx => ctx.contribute(Tools, danger) }), ran: () => ran }
}

const without = (name: string) => (packs: readonly Pack[]) => packs.filter(pack => pack.name !== name)

test('without the permissions pack no tool runs, whoever brought it', async t => {
  const { pack, ran } = guarded()
  const { turn } = await conversation(t, { packs: packs => [...without('permissions')(packs), pack] })
  const { results, asked } = await turn([['Danger', {}]], { permission_mode: undefined })
  assert.deepEqual(asked, [])
  assert.equal(results[0]?.is_error, true)
  assert.match(results[0]?.output ?? '', /No tool can run/)
  assert.equal(ran(), 0)
})

test('a stand-in for the permissions service alone permits nothing, and offers no shell', async t => {
  const { pack, ran } = guarded()
  const dummy = stub(Permissions, { mode: async () => 'yolo', defaultMode: async () => 'yolo', setMode: async () => undefined })
  const { turn, cwd, kernel } = await conversation(t, { packs: packs => [...without('permissions')(packs), dummy, pack] })
  const { results } = await turn([
    ['Danger', {}],
    ['Bash', { command: `touch ${join(cwd, 'made')}` }]
  ])
  assert.match(results[0]?.output ?? '', /No tool can run/)
  assert.match(results[1]?.output ?? '', /not found: Bash/)
  assert.equal(ran(), 0)
  assert.deepEqual(kernel.features().find(({ name }) => name === 'tools-shell')?.meta.waiting_for, ['tool-authority'])
})

test('the authority that leaves takes the right to run with it, and brings it back', async t => {
  const { pack, ran } = guarded()
  const { turn, kernel } = await conversation(t, { packs: packs => [...packs, pack] })
  assert.equal((await turn([['Danger', {}]], { permission_mode: 'yolo' })).results[0]?.output, 'ran 1')
  await kernel.unload('permissions')
  assert.match((await turn([['Danger', {}]])).results[0]?.output ?? '', /No tool can run/)
  await kernel.load('permissions')
  assert.equal((await turn([['Danger', {}]])).results[0]?.is_error, false)
  assert.equal(ran(), 2)
})

test('an authority that throws or says nothing clear refuses, and no guard can permit', async t => {
  const answers: (() => unknown)[] = [
    () => undefined,
    () => true,
    () => ({ kind: 'maybe' }),
    () => {
      throw new Error('broken')
    }
  ]
  const { pack, ran } = guarded()
  const odd = definePack({
    name: 'odd',
    provides: [ToolAuthority],
    // what a pack without types might answer
    setup: ctx =>
      ctx.provide(ToolAuthority, { permit: async () => answers.shift()?.() as { kind: 'run' }, readable: async () => () => true })
  })
  const { turn } = await conversation(t, { packs: packs => [...without('permissions')(packs), odd, pack] })
  for (let left = answers.length; left > 0; left--) assert.equal((await turn([['Danger', {}]])).results[0]?.is_error, true)

  const permissive = definePack({
    name: 'permissive',
    needs: { hooks: ToolHooks },
    setup: (ctx, { hooks }) => ctx.tap(hooks.before, () => ({ kind: 'run' }) as never)
  })
  const other = await conversation(t, { packs: packs => [...packs, permissive, pack] })
  assert.equal((await other.turn([['Danger', {}]])).results[0]?.is_error, true)
  assert.equal(ran(), 0)
})

const dummy = `import { definePack } from 'svc-code/kernel'
  import { Permissions } from 'svc-code/features/permissions'
  import { ToolAuthority } from 'svc-code/features/tools'
  export default definePack({
    name: 'dummy',
    provides: [Permissions, ToolAuthority],
    setup(ctx) {
      ctx.provide(Permissions, { mode: async () => 'auto', defaultMode: async () => 'auto', setMode: async () => {}, remember: async () => {} })
      ctx.provide(ToolAuthority, { permit: async () => ({ kind: 'run' }), readable: async () => () => true })
    }
  })`

test('a pack that provides a default service is the one that counts only where the operator names it', async () => {
  const home = join(await freshDir(), 'home')
  await mkdir(home, { mode: 0o700 })
  await writeFile(join(home, 'dummy.mjs'), dummy)
  const deploy = (more: string) =>
    writeFile(join(home, 'config.toml'), `[packs]\nload = ["./dummy.mjs"]\ndisable = ["permissions"]\n${more}`)
  const named = '[packs.replace]\npermissions = "dummy"\ntool-authority = "dummy"\n'

  for (const more of ['', '[packs.replace]\npermissions = "dummy"\n']) {
    await deploy(more)
    const listed = (await run(home, 'packs')).stdout
    assert.match(listed, /^dummy +Failed +- +it provides '(permissions|tool-authority)' in place of permissions; .*\[packs\.replace\]/m)
    assert.match(listed, /^tools-shell +Pending .*tool-authority/m)
  }

  await deploy(named)
  const listed = (await run(home, 'packs')).stdout
  assert.match(listed, /^dummy +not started/m)
  assert.match(listed, /^tools-shell +not started/m)

  await deploy(named.replaceAll('dummy', 'dumy'))
  const wrong = await run(home, '--port', '0')
  assert.equal(wrong.code, 1)
  assert.match(wrong.stderr, /packs\.replace\.permissions in config\.toml: no loaded pack 'dumy'/)
  await deploy('[packs.replace]\npermision = "dummy"\n')
  assert.match((await run(home, '--port', '0')).stderr, /no default pack provides 'permision'/)
  await deploy('[packs.replace]\npermissions = 1\n')
  assert.match((await run(home, '--port', '0')).stderr, /config\.toml:\d+:\d+: packs\.replace\.permissions must be the name of a pack/)

  await deploy('')
  const required = await run(home, '--port', '0', '--require', 'dummy')
  assert.equal(required.code, 1)
  assert.match(required.stderr, /dummy: it provides 'permissions'/)
})
