/** Contract 1: each route with each error that it lists, over HTTP, from a fresh home. A refused request changes no byte of the home. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { generalErrors } from '../../kernel/index.ts'
import { listServer } from '../features/providers/scene.ts'
import {
  badForms,
  badIds,
  badProvider,
  badTails,
  directory,
  form,
  model,
  models,
  noObject,
  placeholder,
  type Row,
  type Table
} from '../helpers/account-requests.ts'
import { accountRoutes } from '../helpers/account-routes.ts'
import { failuresOf } from '../helpers/documents.ts'
import { type Asked, JudgedServer } from '../helpers/judged.ts'
import { freshDir } from '../helpers/temp.ts'

const fresh = (url: string): Table => ({
  'POST /api/v1/oauth/login': {
    40001: [
      ['a server where no account service is set up', { body: {} }],
      ...noObject,
      ['a region that there is not', { body: { region: 'mars' } }, 'body.region'],
      ['a provider that is no text', { body: { provider: 5 } }, 'body.provider']
    ]
  },
  'GET /api/v1/oauth/login': { 40001: badProvider },
  'DELETE /api/v1/oauth/login': { 40001: badProvider },
  'POST /api/v1/oauth/logout': { 40001: [...noObject, ['an empty provider', { body: { provider: '' } }, 'body.provider']] },
  'GET /api/v1/oauth/usage': { 40001: badProvider },
  'GET /api/v1/oauth/userinfo': { 40001: badProvider },
  'POST /api/v1/config': {
    40001: [
      ...noObject,
      ['a mode that there is not', { body: { default_permission_mode: 'root' } }, 'body.default_permission_mode'],
      ['a flag that is no boolean', { body: { yolo: 'true' } }, 'body.yolo'],
      ['providers that are no map', { body: { providers: [] } }, 'body.providers'],
      [
        'a model of no size',
        { body: { models: { x: { provider: 'p', model: 'm', max_context_size: 0 } } } },
        'body.models.x.max_context_size'
      ],
      [
        'a ratio out of bounds',
        { body: { loop_control: { compaction_trigger_ratio: 0.49 } } },
        'body.loop_control.compaction_trigger_ratio'
      ],
      ['a hook without a command', { body: { hooks: [{ event: 'Stop' }] } }, 'body.hooks.0.command'],
      ['one wrong value beside a good one', { body: { plan_mode: true, telemetry: 1 } }, 'body.telemetry']
    ]
  },
  'POST /api/v1/models/{model_id}:set_default': {
    40001: badTails('models', 'set_default'),
    40413: [
      ['an alias that nobody has', { path: { model_id: 'a/m' } }],
      ['a word of the language', { path: { model_id: 'constructor' } }]
    ]
  },
  'POST /api/v1/providers': {
    40001: [
      ...noObject,
      ['no id', { body: form() }, 'body.id'],
      ...badIds.map((id): Row => [`the id ${JSON.stringify(id)}`, { body: form({ id }) }, 'body.id']),
      ...badForms.map(([what, more, field]): Row => [what, { body: form({ id: 'a', ...more }) }, `body.${field}`])
    ]
  },
  'GET /api/v1/providers/{provider_id}': { 40412: [['an id that nobody has', { path: { provider_id: 'a' } }]] },
  'PUT /api/v1/providers/{provider_id}': {
    40412: [['an id that nobody has', { path: { provider_id: 'a' }, body: form({ new_id: 'b' }) }]],
    40001: [['an id that nobody has and a bad form', { path: { provider_id: 'a' }, body: form({ type: 5 }) }, 'body.type'], ...noObject]
  },
  'DELETE /api/v1/providers/{provider_id}': { 40412: [['an id that nobody has', { path: { provider_id: 'a' } }]] },
  'POST /api/v1/providers/{provider_id}:refresh': {
    40001: badTails('providers', 'refresh'),
    40412: [['an id that nobody has', { path: { provider_id: 'a' } }]]
  },
  'POST /api/v1/providers:refresh': { 40001: ['zap', '', 'REFRESH'].map(tail => [`:${tail}`, { url: `/api/v1/providers:${tail}` }]) },
  'POST /api/v1/providers:import_catalog': {
    40001: [
      ...noObject,
      ['no catalog_id', { body: { id: 'a' } }, 'body.catalog_id'],
      ['an empty catalog_id', { body: { catalog_id: '' } }, 'body.catalog_id'],
      ['a key that is no text', { body: { catalog_id: 'good', api_key: 5 } }, 'body.api_key'],
      ['a URL that is no text', { body: { catalog_id: 'good', base_url: {} } }, 'body.base_url']
    ],
    40004: [
      ['an entry of a protocol that there is not', { body: { catalog_id: 'unknown' } }],
      ['an entry that only its own library can talk to', { body: { catalog_id: 'sealed' } }],
      ['an entry without a URL', { body: { catalog_id: 'homeless' } }],
      ['a blank URL', { body: { catalog_id: 'homeless', base_url: ' ' } }],
      ['a placeholder as URL', { body: { catalog_id: 'good', base_url: placeholder } }],
      ['an entry without models', { body: { catalog_id: 'empty' } }],
      ['an entry whose id is none here', { body: { catalog_id: 'odd/id' } }],
      ['an id of one’s own that is none', { body: { catalog_id: 'good', id: '-a' } }]
    ],
    40417: [
      ['an entry that there is not', { body: { catalog_id: 'nobody' } }],
      ['a word of the language', { body: { catalog_id: 'toString' } }]
    ]
  },
  'POST /api/v1/providers:import_registry': {
    40001: [
      ...noObject,
      ['no url', { body: { api_key: 'k' } }, 'body.url'],
      ['an empty url', { body: { url: '' } }, 'body.url'],
      ['a key that is no text', { body: { url, api_key: false } }, 'body.api_key']
    ],
    40005: [
      ['an address that nobody listens on', { body: { url: 'http://127.0.0.1:1/api.json' } }],
      ['an address of another protocol', { body: { url: 'ftp://127.0.0.1/api.json' } }],
      ['an answer with HTTP 404', { body: { url: `${url}/404` } }],
      ['an answer that is no JSON', { body: { url: `${url}/text` } }],
      ['an answer that is no registry', { body: { url: `${url}/list` } }],
      ['a registry with nothing to import', { body: { url: `${url}/nothing` } }]
    ]
  },
  'GET /api/v1/catalog/providers/{catalog_id}': { 40417: [['an entry that there is not', { path: { catalog_id: 'nobody' } }]] }
})

/** There are `a` (model m), `b` (models x and, as `c/x`, one more), and `o` with a login. */
const withProviders = (url: string): Table => {
  const a = { provider_id: 'a' }
  const o = { provider_id: 'o' }
  return {
    'POST /api/v1/models/{model_id}:set_default': {
      40413: [
        ['the id of a provider', { path: { model_id: 'a' } }],
        ['a model by the name that its provider gave it', { path: { model_id: 'm' } }],
        ['an alias in another case', { path: { model_id: 'A/m' } }]
      ]
    },
    'POST /api/v1/providers': {
      40001: [['an alias of another provider', { body: form({ id: 'c', models: models('w', 'x') }) }, 'body.models']],
      40921: [
        ['the id of a provider', { body: form({ id: 'a' }) }],
        ['the id of a provider with a login', { body: form({ id: 'o' }) }]
      ]
    },
    'GET /api/v1/providers/{provider_id}': { 40412: [['an id in another case', { path: { provider_id: 'A' } }]] },
    'PUT /api/v1/providers/{provider_id}': {
      40001: [
        ['an alias of another provider under the new name', { path: a, body: form({ new_id: 'c', models: models('x') }) }, 'body.new_id'],
        ...badIds.map((new_id): Row => [`the id ${JSON.stringify(new_id)}`, { path: a, body: form({ new_id }) }, 'body.new_id']),
        ...badForms.map(([what, more, field]): Row => [what, { path: a, body: form(more) }, `body.${field}`])
      ],
      40003: [
        ['a provider with a login', { path: o, body: form() }],
        ['a provider with a login and a name that is taken', { path: o, body: form({ new_id: 'a' }) }]
      ],
      40921: [
        ['the id of another provider', { path: a, body: form({ new_id: 'b' }) }],
        ['the id of a provider with a login', { path: a, body: form({ new_id: 'o' }) }]
      ]
    },
    'DELETE /api/v1/providers/{provider_id}': { 40003: [['a provider with a login', { path: o }]] },
    'POST /api/v1/providers:import_catalog': { 40003: [['onto a provider with a login', { body: { catalog_id: 'good', id: 'o' } }]] },
    'POST /api/v1/providers:import_registry': { 40003: [['one that lists a provider with a login', { body: { url: `${url}/registry` } }]] }
  }
}

/** The configuration file is none: nothing can be saved. */
const broken = (url: string): Table => {
  const unsaved = (asked: Asked) => ({ 40001: [['a file that is no TOML', asked, ''] as const] })
  return {
    'POST /api/v1/oauth/logout': unsaved({ body: {} }),
    'POST /api/v1/config': unsaved({ body: { plan_mode: true } }),
    'POST /api/v1/models/{model_id}:set_default': unsaved({ path: { model_id: 'b/x' } }),
    'POST /api/v1/providers': unsaved({ body: form({ id: 'd' }) }),
    'PUT /api/v1/providers/{provider_id}': unsaved({ path: { provider_id: 'a' }, body: form({ type: 'svc' }) }),
    'DELETE /api/v1/providers/{provider_id}': unsaved({ path: { provider_id: 'a' } }),
    'POST /api/v1/providers:import_catalog': unsaved({ body: { catalog_id: 'good' } }),
    'POST /api/v1/providers:import_registry': unsaved({ body: { url: `${url}/other` } })
  }
}

/** Neither the directory nor the authorization server can be reached, and the built-in directory is off. */
const unreachable: Table = {
  'POST /api/v1/oauth/login': { 50001: [['an authorization server that nobody reaches', { body: {} }]] },
  'GET /api/v1/catalog/providers': { 50004: [['a directory that nobody reaches', {}]] },
  'GET /api/v1/catalog/providers/{catalog_id}': { 50004: [['a directory that nobody reaches', { path: { catalog_id: 'good' } }]] },
  'POST /api/v1/providers:import_catalog': { 50004: [['a directory that nobody reaches', { body: { catalog_id: 'good' } }]] }
}

/** Each row: its code, as it is documented, with no data; no byte of the home is another one. */
async function refuse(t: TestContext, server: JudgedServer, table: Table): Promise<void> {
  const before = await server.files()
  for (const [route, errors] of Object.entries(table)) {
    await t.test(route, async () => {
      for (const [code, rows] of Object.entries(errors)) {
        for (const [what, asked, field] of rows) {
          const { status, details, problems, ...answer } = await server.ask(route, asked)
          assert.deepEqual([answer.code, status, answer.data, problems], [Number(code), 200, null, ''], `${what}: ${answer.msg}`)
          if (answer.code === 40001) assert.ok(Array.isArray(details) && details[0].message.length > 0, `${what}: no details`)
          if (field !== undefined) assert.equal(details[0].path, field, what)
          assert.deepEqual(await server.files(), before, `${what}: the home changed`)
        }
      }
    })
  }
}

async function upstreams(t: TestContext): Promise<string> {
  const provider = (id: string) => ({ [id]: { id, api: 'https://r.example', type: 'svc', models: { m: { id: 'm' } } } })
  const replies: Record<string, unknown> = {
    '/api.json': directory,
    '/registry': { ...provider('r'), ...provider('o') },
    '/other': provider('r'),
    '/text': 'no JSON',
    '/list': [],
    '/nothing': { x: { id: 'x', type: 'svc' } }
  }
  return (await listServer(t, ({ path }) => replies[path] ?? 404)).url
}

test('each route of contract 1 answers each error that it lists, and refused requests change nothing', async t => {
  const url = await upstreams(t)
  const home = await freshDir()
  const server = await JudgedServer.start(t, home, { SVC_CODE_CATALOG_URL: `${url}/api.json` })
  const config = join(home, 'config.toml')

  await t.test('on a fresh home', at => refuse(at, server, fresh(url)))

  const login = { storage: 'file', key: 'somewhere' }
  const patch = {
    providers: { o: { type: 'svc', oauth: login } },
    models: { 'o/m': { provider: 'o', ...model() }, 'c/x': { provider: 'b', ...model({ model: 'y' }) } }
  }
  const made = [
    await server.ask('POST /api/v1/providers', { body: form({ id: 'a', api_key: 'sk-a' }) }),
    await server.ask('POST /api/v1/providers', { body: form({ id: 'b', models: models('x') }) }),
    await server.ask('POST /api/v1/config', { body: patch })
  ]
  assert.deepEqual(
    made.map(({ status, code, problems }) => [status, code, problems]),
    [
      [201, 0, ''],
      [201, 0, ''],
      [200, 0, '']
    ]
  )
  await t.test('with providers', at => refuse(at, server, withProviders(url)))

  const saved = await readFile(config)
  await writeFile(config, 'a = [\n')
  await server.socket.next(frame => frame.seq === 4) // says so
  await t.test('with a file that cannot be parsed', at => refuse(at, server, broken(url)))
  await writeFile(config, saved)
  await server.socket.next(frame => frame.seq === 5) // and that it can be used again

  const deleted = await server.ask('DELETE /api/v1/providers/{provider_id}', { path: { provider_id: 'b' } })
  assert.deepEqual([deleted.status, deleted.code, deleted.problems], [204, undefined, ''])
  await server.socket.next(frame => frame.seq === 6)
  const heard = server.socket.frames.filter(({ seq }) => seq !== undefined).map(({ type, seq }) => [type, seq])
  assert.deepEqual(
    heard,
    ['changed', 'changed', 'changed', 'warning', 'warning', 'changed'].map((what, at) => [`event.config.${what}`, at + 1]),
    'only what succeeded was told, and that the file could not be used'
  )

  await t.test('without a directory and an account service', async at => {
    const nowhere = 'http://127.0.0.1:1'
    const settings = { SVC_CODE_CATALOG_URL: nowhere, SVC_CODE_OAUTH_HOST: nowhere, SVC_CODE_API_BASE_URL: nowhere }
    const alone = await freshDir()
    await writeFile(join(alone, 'config.toml'), '[packs.config.catalog]\nsnapshot = false\n[packs.config.oauth]\nclient_id = "c"\n')
    await writeFile(join(alone, 'device_id'), '9f6c1d0e-3a57-4b0e-8a2b-4f1f6f7c2d11')
    await refuse(at, await JudgedServer.start(t, alone, settings), unreachable)
  })

  await t.test('no route lists an error that is not here', () => {
    const tables = [fresh(url), withProviders(url), broken(url), unreachable]
    const general = generalErrors.map(({ code }) => code)
    for (const route of accountRoutes) {
      const [method, path] = route.split(' ') as [string, string]
      const operation = server.document.paths[path]?.[method.toLowerCase()]
      assert.ok(operation, `${route} is documented`)
      const listed = failuresOf(server.document, operation).map(entry => Number(entry.split(' ')[1]))
      const shown = tables.flatMap(table => Object.keys(table[route] ?? {}).map(Number))
      const own = (codes: readonly number[]) => [...new Set(codes)].filter(code => !general.includes(code)).sort()
      assert.deepEqual(own(shown), own(listed), route)
    }
  })
})
