/** A configuration of 1,000 providers with three models each: the lists that clients read at every start, and changes of it. */
import { type BenchServer, startServer } from './processes.ts'
import { median, type Row, repeat, spread } from './table.ts'

const COUNT = 1_000

export async function manyProviders(runs: number): Promise<Row[]> {
  const server = await startServer()
  const ids = Array.from({ length: COUNT }, (_, n) => `provider${n}`)
  await send(server, 'POST', '/api/v1/config', {
    providers: Object.fromEntries(ids.map(id => [id, { type: 'compat_chat', base_url: `https://${id}.example/v1`, api_key: 'k' }])),
    models: Object.fromEntries(
      ids.flatMap(id => ['a', 'b', 'c'].map(model => [`${id}/${model}`, { provider: id, model, max_context_size: 1000 }]))
    )
  })
  const rows: Row[] = []
  const row = async (what: string, act: (round: number) => Promise<number>) => {
    await act(0)
    await server.loop()
    let round = 0
    const times = await repeat(runs * 5, () => act(++round))
    const loop = await server.loop()
    const [least, most] = spread(times)
    rows.push({ what: `${what}, ${COUNT} providers`, ours: median(times), spread: [least, most], unit: 'ms', budget: '' })
    rows.push({ what: `loop delay during ${what}`, ours: loop, unit: 'ms', budget: '< 20', holds: loop < 20 })
  }
  for (const path of ['/config', '/providers', '/models', '/auth']) await row(`GET ${path}`, () => send(server, 'GET', `/api/v1${path}`))
  await row('POST /config with one field', round => send(server, 'POST', '/api/v1/config', { telemetry: round % 2 === 0 }))
  await row('POST /providers', async () => {
    const models = ['a', 'b', 'c'].map(model => ({ model, max_context_size: 1000 }))
    const took = await send(server, 'POST', '/api/v1/providers', { id: 'new', type: 'compat_chat', api_key: 'k', models })
    await send(server, 'DELETE', '/api/v1/providers/new')
    return took
  })
  await row('POST :set_default', round => send(server, 'POST', `/api/v1/models/provider${round % 2}%2Fa:set_default`))
  await server.stop()
  return rows
}

/** Milliseconds until the whole answer is there. */
async function send(server: BenchServer, method: string, path: string, body?: unknown): Promise<number> {
  const from = performance.now()
  const { status, body: answer } = await server.rest.raw(method, path, {
    ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  })
  const took = performance.now() - from
  const { code, msg } = status === 204 ? { code: 0, msg: '' } : (JSON.parse(answer.toString('utf8')) as { code: number; msg: string })
  if (status > 299 || code !== 0) throw new Error(`${method} ${path} answered ${status} ${code} ${msg}`)
  return took
}
