import assert from 'node:assert/strict'
import { test } from 'node:test'
import apiDocs from '../../../features/api-docs/pack.ts'
import { startTestKernel } from '../../../kernel/testing.ts'

test('the documents need the token and come without an envelope', async t => {
  const { rest } = await startTestKernel(t, { packs: [apiDocs] })
  for (const [path, key, version] of [
    ['/openapi.json', 'openapi', '3.1.0'],
    ['/asyncapi.json', 'asyncapi', '3.0.0']
  ] as const) {
    const refused = await rest.raw('GET', path, { token: null })
    const answer = await rest.raw('GET', path)

    assert.equal(refused.status, 401, path)
    assert.equal(answer.status, 200)
    assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
    assert.equal(JSON.parse(answer.body.toString())[key], version)
  }
})
