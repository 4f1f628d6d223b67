/** A pack that is starting again: the model hears it of its tools, and what its guards would have judged is not done meanwhile. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Tool, ToolHooks, Tools } from '../../../features/tools/index.ts'
import { definePack, type Pack, type PackContext, PassingFailure, Type } from '../../../kernel/index.ts'
import { scriptedModel, startTestServer, toolCalls } from '../../../testing/index.ts'

/** A pack that `fails` as it is told, and resolves when it is out. */
function failing(pack: Pack) {
  const { name } = pack
  let ctx: PackContext | undefined
  return {
    pack: {
      ...pack,
      setup(given: never, services: never) {
        ctx = given as unknown as PackContext
        return pack.setup(given, services)
      }
    } as Pack,
    async fails(server: Awaited<ReturnType<typeof startTestServer>>, error: Error) {
      const out = new Promise<void>(done =>
        server.kernel.hooks.packState.tap('test', (one, state) => void (one === name && state === 'Failed' && done()))
      )
      ctx?.fail(error)
      await out
    }
  }
}

const look: Tool = {
  name: 'Look',
  description: 'Looks',
  parameters: Type.Object({}),
  source: 'builtin',
  prepare: () => ({ description: 'look', accesses: [], run: async () => ({ output: 'seen' }) })
} as never

async function start(t: TestContext, packs: readonly Pack[], turns: number) {
  const calls = Array.from({ length: turns }, () => [toolCalls({ name: 'Look', args: {} }), 'done']).flat()
  const model = scriptedModel(...(calls as [string]))
  const server = await startTestServer(t, { packs, model, approvals: 'approved' })
  const output = async () => (await server.prompt('look')).results[0]?.output
  const offered = (at: number) => model.requests[at]?.tools?.some(({ name }) => name === 'Look') ?? false
  return { server, output, offered }
}

test('the model goes on knowing the tools of a pack that comes back, and a call of one says so; not of one that gave up', async t => {
  const { pack, fails } = failing(definePack({ name: 'looker', setup: ctx => void ctx.contribute(Tools, look) }))
  const { server, output, offered } = await start(t, [pack], 4)
  assert.equal(await output(), 'seen')
  await fails(server, new PassingFailure('its process ended', 60_000))
  assert.equal(await output(), 'The tool Look cannot be called now: pack looker is starting again; try again in a moment.')
  assert.equal(offered(2), true)
  await server.kernel.reload('looker')
  assert.equal(await output(), 'seen')
  await fails(server, new Error('broken'))
  assert.equal(await output(), 'Tool not found: Look')
  assert.equal(offered(6), false)
})

test('while the pack of a guard is starting again no call is made; when it gave up, is unloaded or is back, its say counts as ever', async t => {
  const guard = failing(
    definePack({
      name: 'guard',
      needs: { hooks: ToolHooks },
      setup: (ctx, { hooks }) => void ctx.tap(hooks.before, async () => undefined)
    })
  )
  const looker = definePack({ name: 'looker', setup: ctx => void ctx.contribute(Tools, look) })
  const { server, output } = await start(t, [guard.pack, looker], 4)
  await guard.fails(server, new PassingFailure('its process ended', 60_000))
  assert.equal(await output(), 'The call was not made: pack guard is starting again; try again in a moment.')
  assert.equal(server.kernel.features().find(({ name }) => name === 'looker')?.meta.faults, undefined)
  await server.kernel.reload('guard')
  assert.equal(await output(), 'seen')
  await guard.fails(server, new PassingFailure('its process ended', 60_000))
  await server.kernel.unload('guard')
  assert.equal(await output(), 'seen')
})
