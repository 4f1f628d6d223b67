import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { HostIdentity } from '../../../features/llm/index.ts'
import { stub } from '../../../kernel/testing.ts'
import { runWith } from '../../helpers/cli.ts'
import { freshDir } from '../../helpers/temp.ts'
import { callTools, site } from './scene.ts'

const search = [{ name: 'WebSearch', args: { query: 'how to test' } }]

test('the configured service is asked, and what it finds is shown in blocks', async t => {
  const asked: unknown[] = []
  const url = await site(t, (req, res, body) => {
    asked.push([req.url, req.headers.authorization, JSON.parse(body)])
    const search_results = [
      { title: 'One', site_name: 'Site', date: '2026-01-02', url: 'https://a.example/1', snippet: 'first\n\nlines' },
      { name: 'Two', link: 'https://b.example', description: 'd'.repeat(3000) },
      'nonsense'
    ]
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ search_results }))
  })
  const { results, tools, events } = await callTools(t, search, {
    services: { svc_search: { base_url: `${url}/v1/search/`, api_key: 'secret' } }
  })
  assert.deepEqual(tools, ['FetchURL', 'WebSearch'])
  assert.deepEqual(asked, [['/v1/search', 'Bearer secret', { query: 'how to test', text_query: 'how to test', limit: 20 }]])
  assert.equal(
    results[0]?.text,
    `Title: One\nSite: Site\nDate: 2026-01-02\nURL: https://a.example/1\nSnippet: first lines\n\nTitle: Two\nURL: https://b.example\nSnippet: ${'d'.repeat(1000)}`
  )
  const started = events.find(event => event.type === 'tool.call.started')?.payload as { display?: unknown }
  assert.deepEqual(started.display, { kind: 'search', query: 'how to test' })
})

test('both services are told which host asks, under the headers of their record; pages are not', async t => {
  const asked: unknown[] = []
  const url = await site(t, (req, res) => {
    asked.push([req.url, req.headers['user-agent'], req.headers['x-svc-device-id'], req.headers['x-svc-platform']])
    res.writeHead(req.url === '/fetch' ? 500 : 200, { 'content-type': 'text/plain' }).end('[]')
  })
  const host = { 'user-agent': 'svc-code/test', 'x-svc-device-id': 'device-1', 'x-svc-platform': 'linux' }
  const custom_headers = { 'X-Svc-Platform': 'mine' }
  await callTools(t, [...search, { name: 'FetchURL', args: { url: `${url}/page` } }], {
    packs: [stub(HostIdentity, { headers: async () => host })],
    services: { svc_search: { base_url: `${url}/search` }, svc_fetch: { base_url: `${url}/fetch`, custom_headers } }
  })
  assert.deepEqual(asked.slice(0, 2).sort(), [
    ['/fetch', 'svc-code/test', 'device-1', 'mine'],
    ['/search', 'svc-code/test', 'device-1', 'linux']
  ])
  const [path, agent, ...rest] = asked[2] as unknown[]
  assert.deepEqual([path, ...rest], ['/page', undefined, undefined])
  assert.match(String(agent), /^svc-code\/\d/)
})

test('an answer that is none, a refusal and an empty list are told', async t => {
  const answers = [
    [500, 'secret stands here'],
    [200, '<html>'],
    [200, '{"other": 1}'],
    [200, '[]']
  ] as const
  let n = 0
  const url = await site(t, (_req, res) => {
    const [status, body] = answers[n++] ?? [500, '']
    res.writeHead(status).end(body)
  })
  const told: string[] = []
  for (const _ of answers) told.push((await callTools(t, search, { services: { svc_search: { base_url: url } } })).results[0]?.text ?? '')
  assert.match(told[0] ?? '', /The search failed: svc_search answered HTTP 500\./)
  assert.match(told[1] ?? '', /answered no JSON/)
  assert.match(told[2] ?? '', /answered no list/)
  assert.equal(told[3], 'Nothing was found.')
})

test('a service with a login that nobody has is refused, and one without an address is none', async t => {
  const oauth = { storage: 'file', key: 'k' }
  const { results } = await callTools(t, search, { services: { svc_search: { base_url: 'http://127.0.0.1:9', oauth } } })
  assert.match(results[0]?.text ?? '', /not logged in/)
  const { tools } = await callTools(t, search, { services: { svc_search: { api_key: 'k' } } })
  assert.ok(!tools.includes('WebSearch'))
})

test('doctor --network lists the services and the public web', async () => {
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), '[services.svc_search]\nbase_url = "https://find.invalid/v1?key=1"\n')
  const { stdout } = await runWith({ SVC_CODE_HOME: home }, 'doctor', '--network', '--offline')
  assert.match(stdout, /^tools-web +https:\/\/find\.invalid +refused +the search service +WebSearch$/m)
  assert.match(stdout, /^tools-web .*refused +pages of the public web +FetchURL$/m)
})
