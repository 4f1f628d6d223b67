/** Packs that do wrong, one after the other in a running server: it lives, others are served, the culprit is named, and nothing of it stays. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  defineEvent,
  defineFrame,
  definePack,
  defineRoute,
  errorSpec,
  extensionPoint,
  named,
  type Pack,
  type PackContext,
  PackControl,
  serviceToken,
  type TSchema,
  Type
} from '../../kernel/index.ts'
import { createKernel } from '../../kernel/kernel.ts'
import { startTestKernel } from '../../kernel/testing.ts'
import { freshDir } from '../helpers/temp.ts'

const Voice = serviceToken<string>('voice')
const Absent = serviceToken<string>('absent')
const Words = extensionPoint<string>('words')
const said = defineEvent({ type: 'event.said', scope: 'global', durable: false, payload: Type.Object({}) })
const oops = errorSpec('oops', 49901, 'oops')
const route = (name: string, data: TSchema = Type.Null(), more: object = {}) =>
  defineRoute({ method: 'GET', path: `/api/v1/${name}`, summary: name, data, ...more })
const ping = route('ping', named('Pong', Type.Object({ pong: Type.Boolean() })), { operationId: 'ping', errors: [oops] })
const say = route('say')
const bad = route('bad', Type.Unknown())
const never = () => new Promise<never>(() => undefined)
const boom = (): never => {
  throw new Error('boom')
}

const held: { control?: PackControl } = {}
/** Everybody else: a route, an event, a service, and what they add to a list. */
const others = definePack({
  name: 'others',
  needs: { control: PackControl },
  provides: [Voice],
  setup: (ctx, { control }) => {
    held.control = control
    const emit = ctx.event(said)
    ctx.provide(Voice, 'alto')
    ctx.contribute(Words, 'hello')
    ctx.route(ping, () => ({ pong: true }))
    ctx.route(say, () => {
      emit({})
      return null
    })
  }
})

const Rooms = extensionPoint<{ name: string; open(): void }>('rooms', undefined, { name: 'string', open: 'function' })

type Ctx = PackContext<Record<string, never>>
type Setup = (ctx: Ctx) => unknown
interface Row {
  readonly setup?: Setup
  readonly more?: object
  readonly options?: unknown
  /** What brings the fault about, once the pack is there. */
  readonly poke?: 'bad' | 'say' | 'word' | 'unload'
  readonly state: 'Active' | 'Failed' | 'Pending'
  /** What its row in the features says; undefined: nothing, nobody else could have noticed. */
  readonly named?: RegExp
}

const answering =
  (answer: () => unknown): Setup =>
  ctx =>
    void ctx.route(bad, answer)
const rows: Readonly<Record<string, Row>> = {
  'a setup that throws': { setup: boom, state: 'Failed', named: /^boom$/ },
  'a setup that throws a text': {
    setup: () => {
      throw 'a text'
    },
    state: 'Failed',
    named: /^a text$/
  },
  'a setup that throws nothing': {
    setup: () => {
      throw undefined
    },
    state: 'Failed',
    named: /^undefined$/
  },
  'a setup that throws null': {
    setup: () => {
      throw null
    },
    state: 'Failed',
    named: /^null$/
  },
  'a setup that rejects': { setup: async () => boom(), state: 'Failed', named: /^boom$/ },
  'a setup that rejects with a number': { setup: () => Promise.reject(42), state: 'Failed', named: /^42$/ },
  'a setup that hangs': { setup: never, state: 'Failed', named: /longer than 50 ms/ },
  'a setup that ends too late and goes on': {
    setup: async ctx => {
      await new Promise(resolve => ctx.signal.addEventListener('abort', resolve))
      ctx.route(bad, () => null)
    },
    state: 'Failed',
    named: /longer than 50 ms/
  },
  'a setup that throws half-way': {
    setup: ctx => {
      ctx.route(bad, () => null)
      ctx.contribute(Words, 'half')
      ctx.tap(ctx.hooks.event, boom)
      boom()
    },
    state: 'Failed',
    named: /^boom$/
  },
  'a setup whose clean-up throws as well': {
    setup: ctx => {
      ctx.own(boom)
      throw new Error('first')
    },
    state: 'Failed',
    named: /^first$/
  },
  'a setup whose clean-up hangs': {
    setup: ctx => {
      ctx.own(never)
      boom()
    },
    state: 'Failed',
    named: /^boom$/
  },
  'a thenable that throws': {
    setup: () => ({
      // biome-ignore lint/suspicious/noThenProperty: that is the point
      then: boom
    }),
    state: 'Failed',
    named: /^boom$/
  },
  'a setup that is no function': { setup: 42 as unknown as Setup, state: 'Failed', named: /not what definePack takes: setup$/ },
  'background work that throws at once': { setup: ctx => ctx.background(boom), state: 'Active', named: /^background work: boom$/ },
  'background work that answers no promise': { setup: ctx => ctx.background((() => 42) as never), state: 'Active' },
  'a promised service that is not there': { more: { provides: [Absent] }, state: 'Failed', named: /did not provide 'absent'/ },
  'a service that was not declared': { setup: ctx => ctx.provide(Absent, 'x'), state: 'Failed', named: /'absent' without declaring/ },
  'a service twice': {
    setup: ctx => {
      ctx.provide(Absent, 'x')
      ctx.provide(Absent, 'y')
    },
    more: { provides: [Absent] },
    state: 'Failed',
    named: /'absent' twice/
  },
  'the service of another': {
    setup: ctx => ctx.provide(Voice, 'bass'),
    more: { provides: [Voice] },
    state: 'Failed',
    named: /service 'voice' of culprit clashes with others/
  },
  'the route of another': {
    setup: ctx => ctx.route(ping, () => ({ pong: false })),
    state: 'Failed',
    named: /ping of culprit clashes with others/
  },
  'a route twice': {
    setup: ctx => {
      ctx.route(bad, () => null)
      ctx.route(bad, () => null)
    },
    state: 'Failed',
    named: /bad of culprit clashes with culprit/
  },
  'a route that is none': { setup: ctx => ctx.route(null as never, () => null as never), state: 'Failed', named: /null/ },
  'a path that is none': {
    setup: ctx => ctx.route(defineRoute({ method: 'GET', path: '/{a}/{a}', summary: 'x', data: Type.Null() }), () => null),
    state: 'Failed',
    named: /\{a\}/
  },
  'a method that is none': {
    setup: ctx => ctx.route({ ...bad, method: 'FETCH' } as never, () => null as never),
    state: 'Failed',
    named: /^route FETCH \/api\/v1\/bad: the method is none of GET, POST/
  },
  'a route without a shape of its answer': {
    setup: ctx => ctx.route({ ...bad, data: undefined } as never, () => null as never),
    state: 'Failed',
    named: /^route GET \/api\/v1\/bad: data, the shape of its answer, is missing$/
  },
  'a shape that was not made with Type': {
    setup: ctx => ctx.route({ ...bad, data: { type: 'string' } } as never, () => null as never),
    state: 'Failed',
    named: /^route GET \/api\/v1\/bad: data needs a schema made with Type, not \{ type: 'string' \}$/
  },
  'a field that was not made with Type': {
    setup: ctx => ctx.route({ ...bad, data: Type.Array(Type.Object({ n: { type: 'string' } as never })) } as never, () => null as never),
    state: 'Failed',
    named: /^route GET \/api\/v1\/bad: data has 'n', which was not made with Type$/
  },
  'a list of what was not made with Type': {
    setup: ctx => ctx.route({ ...bad, data: Type.Array({ type: 'string' } as never) } as never, () => null as never),
    state: 'Failed',
    named: /^route GET \/api\/v1\/bad: data has 'items', which was not made with Type$/
  },
  'a route with errors that are none': {
    setup: ctx => ctx.route({ ...bad, errors: [undefined] } as never, () => null as never),
    state: 'Failed',
    named: /^errors of route GET \/api\/v1\/bad needs a list made with errorSpec, not \[ undefined \]$/
  },
  'a route whose query is no object': {
    setup: ctx => ctx.route({ ...bad, query: Type.String() } as never, () => null as never),
    state: 'Failed',
    named: /^route GET \/api\/v1\/bad: query needs a schema of an object, not /
  },
  'a route with a status that is no success': {
    setup: ctx => ctx.route({ ...bad, status: 99 } as never, () => null as never),
    state: 'Failed',
    named: /^route GET \/api\/v1\/bad: status needs 200 to 299, not 99$/
  },
  'a route of bytes without media types': {
    setup: ctx => ctx.route({ ...bad, binary: true } as never, () => null as never),
    state: 'Failed',
    named: /^route GET \/api\/v1\/bad: binary needs 'types', a list of media types, not true$/
  },
  'a declaration that throws when it is looked at again': {
    setup: ctx => {
      let looks = 0
      const spec = {
        ...bad,
        get errors() {
          return looks++ === 0 ? [] : boom()
        }
      }
      ctx.route(spec, () => null)
    },
    state: 'Failed',
    named: /^boom$/
  },
  'a frame with errors that are none': {
    setup: ctx => ctx.frame({ type: 'f', payload: Type.Object({}), ack: Type.Object({}), errors: 'no' } as never, (() => ({})) as never),
    state: 'Failed',
    named: /^errors of f needs a list made with errorSpec, not 'no'$/
  },
  'a frame of the server with a field that has no schema': {
    setup: ctx => ctx.outFrame({ type: 'f', payload: Type.Object({}), fields: { n: 5 } } as never),
    state: 'Failed',
    named: /^n of f needs a schema made with Type, not 5$/
  },
  'a handler that is none': {
    setup: ctx => ctx.route(bad, undefined as never),
    state: 'Failed',
    named: /^the handler of GET \/api\/v1\/bad needs a function, not undefined$/
  },
  'a handler of frames that is none': {
    setup: ctx => ctx.frame(defineFrame({ type: 'f', summary: 'x', payload: Type.Object({}), ack: Type.Object({}) }), {} as never),
    state: 'Failed',
    named: /^the handler of f needs a function, not \{\}$/
  },
  'a listener that is none': {
    setup: ctx => ctx.on(said, 'x' as never),
    state: 'Failed',
    named: /^the listener of event.said needs a function, not 'x'$/
  },
  'an event that is none': { setup: ctx => ctx.on(undefined as never, boom as never), state: 'Failed', named: /undefined/ },
  'an event without a payload': {
    setup: ctx => void ctx.event({ ...said, type: 'event.bad', payload: undefined } as never),
    state: 'Failed',
    named: /^the payload of event.bad needs a schema made with Type, not undefined$/
  },
  'an event without a type': {
    setup: ctx => void ctx.event({ ...said, type: undefined } as never),
    state: 'Failed',
    named: /^an event needs a type, not undefined$/
  },
  'an event of a scope that is none': {
    setup: ctx => void ctx.event({ ...said, type: 'event.bad', scope: 'all' } as never),
    state: 'Failed',
    named: /^the scope of event.bad needs 'session' or 'global', not 'all'$/
  },
  'a frame without an ack': {
    setup: ctx => ctx.frame({ type: 'f', payload: Type.Object({}) } as never, (() => ({})) as never),
    state: 'Failed',
    named: /^the ack of f needs a schema made with Type, not undefined$/
  },
  'a frame whose check is no function': {
    setup: ctx => ctx.frame({ type: 'f', payload: Type.Object({}), ack: Type.Object({}) } as never, (() => ({})) as never, 'no' as never),
    state: 'Failed',
    named: /^the check of f needs a function, not 'no'$/
  },
  'a frame of the server without a payload': {
    setup: ctx => ctx.outFrame({ type: 'f' } as never),
    state: 'Failed',
    named: /^the payload of f needs a schema made with Type, not undefined$/
  },
  'a tap that is none': {
    setup: ctx => ctx.tap(ctx.hooks.beforeRequest, 5 as never),
    state: 'Failed',
    named: /^a tap needs a function, not 5$/
  },
  'a hook that is none': {
    setup: ctx => ctx.tap((ctx.hooks as Record<string, unknown>).beforeReqest as never, boom as never),
    state: 'Failed',
    named: /^ctx.tap needs a hook, not undefined$/
  },
  'a hook that refuses its tap': {
    setup: ctx => {
      ctx.contribute(Words, 'half')
      ctx.tap({ taps: [], tap: boom } as never, boom as never)
    },
    state: 'Failed',
    named: /^boom$/
  },
  'an extension point that is none': {
    setup: ctx => ctx.contribute(undefined as never, 'x'),
    state: 'Failed',
    named: /^ctx.contribute needs an extension point, not undefined$/
  },
  'an item that lacks a part': {
    setup: ctx => ctx.contribute(Rooms, { name: 'hall', open: 5 as never }),
    state: 'Failed',
    named: /^what is contributed to 'rooms' needs 'open' \(function\), not 5$/
  },
  'an item that is none': {
    setup: ctx => ctx.contribute(Rooms, null as never),
    state: 'Failed',
    named: /^what is contributed to 'rooms' needs 'name' \(string\), not null$/
  },
  'a store of a kind that is none': {
    setup: ctx => void ctx.store({ name: 'notes', value: Type.Any(), kind: 'table' as never }),
    state: 'Failed',
    named: /^store notes needs the kind 'kv', 'document', 'log' or 'blob', not 'table'$/
  },
  'a store whose name leads elsewhere': {
    setup: ctx => void ctx.store({ name: '../notes', value: Type.Any(), kind: 'document' }),
    state: 'Failed',
    named: /^not a usable name of a store: "\.\.\/notes"$/
  },
  'a store without a shape of its values': {
    setup: ctx => void ctx.store({ name: 'notes' } as never),
    state: 'Failed',
    named: /^value of store notes needs a schema made with Type, not undefined$/
  },
  'a timer without work': {
    setup: ctx => ctx.timer(10, undefined as never),
    state: 'Failed',
    named: /^a timer needs a function, not undefined$/
  },
  'a clean-up that is none': {
    setup: ctx => void ctx.own({ close: boom } as never),
    state: 'Failed',
    named: /^a clean-up needs a function, not \{/
  },
  'params that the path does not have': {
    setup: ctx => ctx.route({ ...bad, params: Type.Object({ id: Type.String() }) } as never, () => null as never),
    state: 'Failed',
    named: /no parameter id/
  },
  'the operation id of another': {
    setup: ctx => ctx.route(route('other', Type.Null(), { operationId: 'ping' }), () => null),
    state: 'Failed',
    named: /operation id ping of culprit clashes with others/
  },
  'the event of another': {
    setup: ctx => void ctx.event(said),
    state: 'Failed',
    named: /event type event.said of culprit clashes with others/
  },
  'a frame of the kernel': {
    setup: ctx =>
      ctx.frame(defineFrame({ type: 'client_hello', summary: 'x', payload: Type.Object({}), ack: Type.Object({}) }), () => ({})),
    state: 'Failed',
    named: /client_hello of culprit clashes with the kernel/
  },
  'the error code of another': {
    more: { errors: [errorSpec('mine', 49901, 'mine')] },
    state: 'Failed',
    named: /49901 is 'oops' of others and 'mine' of culprit/
  },
  'the shape of another': {
    setup: ctx => ctx.route(route('other', named('Pong', Type.Object({ pong: Type.String() }))), () => ({ pong: '' })),
    state: 'Failed',
    named: /shape Pong of culprit differs from that of others/
  },
  'options of a wrong type': {
    more: { config: Type.Object({ n: Type.Integer() }) },
    options: { n: 'many' },
    state: 'Failed',
    named: /bad deployment config for pack culprit: n/
  },
  'options that nobody knows': { options: { n: 1 }, state: 'Failed', named: /unknown n/ },
  'options that are no table': { options: [1], state: 'Failed', named: /must be a table/ },
  'a default that does not fit': { more: { config: Type.Object({ n: Type.Integer({ default: 'x' }) }) }, state: 'Failed', named: /n: / },
  'a need that nobody meets': { more: { needs: { absent: Absent } }, state: 'Pending', named: /^absent$/ },
  'a need of its own service': { more: { needs: { absent: Absent }, provides: [Absent] }, state: 'Failed', named: /culprit -> culprit/ },
  'a need that is no service': { more: { needs: { a: undefined } }, state: 'Failed', named: /not what definePack takes: needs.a$/ },
  'an optional need that is no service': { more: { optional: { a: 1 } }, state: 'Failed', named: /optional.a$/ },
  'a promise of no service': { more: { provides: [undefined] }, state: 'Failed', named: /provides$/ },
  'errors that are none': { more: { errors: ['no'] }, state: 'Failed', named: /errors$/ },
  'a schema of options that is none': { more: { config: 42 }, state: 'Failed', named: /not what definePack takes: config$/ },
  'options without a schema': { more: { config: { n: 3 } }, state: 'Failed', named: /not what definePack takes: config$/ },
  'a handler that throws': { setup: answering(boom), poke: 'bad', state: 'Active', named: /route GET \/api\/v1\/bad: boom/ },
  'a handler that rejects': { setup: answering(async () => boom()), poke: 'bad', state: 'Active', named: /bad: boom/ },
  'a handler that throws a text': {
    setup: answering(() => {
      throw 'a text'
    }),
    poke: 'bad',
    state: 'Active',
    named: /bad: a text/
  },
  'an answer that is no JSON': { setup: answering(() => ({ n: 1n })), poke: 'bad', state: 'Active', named: /bad: .*BigInt/ },
  'an answer that goes round': {
    setup: answering(() => {
      const round: Record<string, unknown> = {}
      round.again = round
      return round
    }),
    poke: 'bad',
    state: 'Active',
    named: /bad: .*circular/
  },
  'an answer that throws when it is read': {
    setup: answering(() => ({
      get n() {
        return boom()
      }
    })),
    poke: 'bad',
    state: 'Active',
    named: /bad: boom/
  },
  'a listener that throws': { setup: ctx => ctx.on(said, boom), poke: 'say', state: 'Active', named: /listener of event.said: boom/ },
  'a listener that rejects': {
    setup: ctx => ctx.on(said, async () => boom()),
    poke: 'say',
    state: 'Active',
    named: /listener of event.said: boom/
  },
  'a tap of events that throws': {
    setup: ctx => ctx.tap(ctx.hooks.event, boom),
    poke: 'say',
    state: 'Active',
    named: /tap of event: boom/
  },
  'a tap of answers that throws': {
    setup: ctx => ctx.tap(ctx.hooks.afterRequest, boom),
    poke: 'say',
    state: 'Active',
    named: /tap of afterRequest: boom/
  },
  'a tap of states that throws': {
    setup: ctx => ctx.tap(ctx.hooks.packState, boom),
    poke: 'word',
    state: 'Active',
    named: /tap of packState: boom/
  },
  'a change listener that throws': {
    setup: ctx => void ctx.collect(Words).onChange(boom),
    poke: 'word',
    state: 'Active',
    named: /change listener of words: boom/
  },
  'background work that rejects': {
    setup: ctx => ctx.background(async () => boom()),
    poke: 'say',
    state: 'Active',
    named: /background work: boom/
  },
  'a request refused by a tap that fails, until the limit of faults': {
    setup: ctx => ctx.tap(ctx.hooks.beforeRequest, boom),
    poke: 'say',
    state: 'Failed',
    named: /failed 5 times within 60 s.*tap of beforeRequest: boom/
  },
  'a handler that fails until the limit of faults': {
    setup: answering(boom),
    poke: 'bad',
    state: 'Failed',
    named: /failed 5 times within 60 s.*bad: boom/
  },
  'a clean-up that throws': { setup: ctx => void ctx.own(boom), poke: 'unload', state: 'Active' },
  'a clean-up that hangs': { setup: ctx => void ctx.own(never), poke: 'unload', state: 'Active' },
  'work in the background that ignores its end': { setup: ctx => ctx.background(never), poke: 'unload', state: 'Active' },
  'a context that is used after the end': {
    setup: ctx => {
      setImmediate(() => void Promise.resolve().then(() => ctx.signal))
      ctx.own(() => ctx.route(bad, () => null))
    },
    poke: 'unload',
    state: 'Active'
  }
}

function packOf({ setup = () => undefined, more = {} }: Row): Pack {
  return definePack({ name: 'culprit', ...more, setup: setup as never })
}

test('bad packs in a running server: others are served, the culprit is named, and nothing of it is left', async t => {
  const { kernel, call } = await startTestKernel(t, {
    packs: [others],
    setupTimeoutMs: 50,
    graceMs: 20,
    allowViolations: true,
    strict: false,
    faultLimit: { count: 5, within_ms: 60_000 }
  })
  const before = kernel.inspect()
  const word = () => definePack({ name: 'word', setup: ctx => void ctx.contribute(Words, 'more') })
  const pokes = {
    bad: () => call(bad),
    say: () => call(say),
    word: () => kernel.load(word()).then(() => kernel.unload('word')),
    unload: async () => undefined
  }
  for (const [what, row] of Object.entries(rows)) {
    await t.test(what, async each => {
      each.after(() => held.control?.change({ remove: ['culprit'] }).catch(() => undefined))
      held.control?.configure('culprit', row.options)
      await kernel.load(packOf(row))
      const times = row.state === 'Failed' && row.poke ? 5 : 1
      for (let n = 0; n < times && row.poke; n++) await pokes[row.poke]()
      await new Promise(setImmediate)
      await kernel.load('others') // after whatever is under way
      const feature = kernel.features().find(one => one.name === 'culprit')
      assert.equal(feature?.state, row.state)
      const { error, faults, waiting_for } = feature?.meta ?? {}
      const told = error ?? faults?.last ?? waiting_for?.join()
      if (row.named) assert.match(told ?? '', row.named)
      else assert.equal(told, undefined)
      assert.deepEqual((await call(ping)).data, { pong: true })

      await kernel.unload('culprit')
      assert.deepEqual(kernel.inspect(), before)
      assert.deepEqual((await call(ping)).data, { pong: true })
      assert.deepEqual(
        kernel.features().map(one => [one.name, one.state, one.meta.faults]),
        [['others', 'Active', undefined]]
      )
    })
  }
})

test('a start that requires bad packs ends with one error that names each of them', async () => {
  const bads = Object.values(rows)
    .filter(row => row.state !== 'Active' && !row.poke && row.options === undefined)
    .map((row, n) => ({ ...packOf(row), name: `bad-${n}` }))
  const required = bads.map(pack => pack.name)
  const kernel = await createKernel({
    home: await freshDir(),
    packs: [others, ...bads],
    required,
    port: 0,
    setupTimeoutMs: 50,
    log: { level: 'silent' }
  })
  await assert.rejects(kernel.start(), (error: Error) => required.every(name => error.message.includes(`${name}: `)))
})
