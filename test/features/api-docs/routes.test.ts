import assert from 'node:assert/strict'
import { test } from 'node:test'
import apiDocs from '../../../features/api-docs/pack.ts'
import { startTestKernel } from '../../../kernel/testing.ts'

test('the documents need the token and come without an envelope', async t => {
  const { rest } = await startTestKernel(t, { packs: [apiDocs] })
  for (const [path, key] of [
    ['/openapi.json', 'openapi'],
    ['/asyncapi.json', 'asyncapi']
  ] as const) {
    const refused = await rest.raw('GET', path, { token: null })
    const answer = await rest.raw('GET', path)

    assert.equal(refused.status, 401, path)
    assert.equal(answer.status, 200)
    assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8')
    assert.match(JSON.parse(answer.body.toString())[key], /^3\.1\./)
  }
})
