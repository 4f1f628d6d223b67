/** A configuration of 1,000 providers with three models each: the lists that clients read at every start. */
import { startServer } from './processes.ts'
import { median, type Row, repeat, spread } from './table.ts'

const COUNT = 1_000

export async function manyProviders(runs: number): Promise<Row[]> {
  const server = await startServer()
  const ids = Array.from({ length: COUNT }, (_, n) => `provider${n}`)
  const { code, msg } = await server.rest.json('POST', '/api/v1/config', {
    providers: Object.fromEntries(ids.map(id => [id, { type: 'compat_chat', base_url: `https://${id}.example/v1`, api_key: 'k' }])),
    models: Object.fromEntries(
      ids.flatMap(id => ['a', 'b', 'c'].map(model => [`${id}/${model}`, { provider: id, model, max_context_size: 1000 }]))
    )
  })
  if (code !== 0) throw new Error(msg)
  const rows: Row[] = []
  for (const path of ['/api/v1/providers', '/api/v1/models', '/api/v1/auth']) {
    await server.loop()
    const times = await repeat(runs * 5, async () => {
      const from = performance.now()
      const { status } = await server.rest.raw('GET', path)
      if (status !== 200) throw new Error(`${path} answered ${status}`)
      return performance.now() - from
    })
    const loop = await server.loop()
    const what = `GET ${path.replace('/api/v1', '')}, ${COUNT} providers`
    rows.push({ what, ours: median(times), spread: spread(times), unit: 'ms', budget: 'loop < 20', holds: loop < 20 })
  }
  await server.stop()
  return rows
}
