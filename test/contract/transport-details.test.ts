/** Every 40001 names the offending field from the root of the request, whoever found it: the schema or a handler. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { startTestKernel } from '../../kernel/testing.ts'
import { freshDir } from '../helpers/temp.ts'

interface Answer {
  readonly code: number
  readonly msg: string
  readonly data: { readonly id: string }
  readonly details?: readonly { readonly path: string; readonly message: string }[]
}

async function start(t: TestContext) {
  const { url, token } = await startTestKernel(t, { packs: await loadDefaultPacks() })
  const cwd = await freshDir()
  const send = async (path: string, init: RequestInit): Promise<Answer> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    return (await fetch(`${url}/api/v1${path}`, { ...init, headers })).json() as Promise<Answer>
  }
  const ask = (path: string, body?: unknown) => send(path, body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) })
  const { data: session } = await ask('/sessions', { metadata: { cwd } })
  return { ask, send, cwd, session: `/sessions/${session.id}` }
}

test('a detail path begins with the part of the request that is wrong', async t => {
  const { ask, cwd, session } = await start(t)
  const cases: [path: string, body: unknown, field: string][] = [
    ['/sessions', {}, 'body.metadata.cwd'],
    ['/sessions', { metadata: { cwd: 7 } }, 'body.metadata.cwd'],
    ['/sessions', { workspace_id: 'other', metadata: { cwd } }, 'body.workspace_id'],
    ['/sessions?workspace_id=other', undefined, 'query.workspace_id'],
    ['/sessions?before_id=a&after_id=b', undefined, 'query.before_id'],
    ['/sessions?archived_only=true&include_archive=true', undefined, 'query.archived_only'],
    ['/sessions/%zz', undefined, 'params.session_id'],
    [`${session}/messages?before_id=a&after_id=b`, undefined, 'query.before_id'],
    [`${session}/prompts`, { content: [{ type: 'text', text: 'a' }], prompt_id: 'p', skills: [{ name: 's' }] }, 'body.prompt_id'],
    ['/workspaces', { root: './relative' }, 'body.root'],
    ['/config', { default_permission_mode: 'never' }, 'body.default_permission_mode'],
    ['/config', { loop_control: { maxStepsPerTurn: -1 } }, 'body.loop_control.maxStepsPerTurn']
  ]
  for (const [path, body, field] of cases) {
    const answer = await ask(path, body)
    assert.equal(answer.code, 40001, `${path} ${answer.msg}`)
    assert.equal(answer.details?.[0]?.path, field, path)
    assert.ok(answer.msg.startsWith(`${field}: `), answer.msg)
  }
})

test('an unknown profile, model and thinking level are told where they stood', async t => {
  const { ask, session } = await start(t)
  await ask('/config', {
    providers: { local: { type: 'svc', base_url: 'http://127.0.0.1:9', api_key: 'k' } },
    models: { m: { provider: 'local', model: 'm', max_context_size: 1000, support_efforts: ['low'] } },
    default_model: 'm'
  })
  const content = [{ type: 'text', text: 'hello' }]
  const prompt = `${session}/prompts`

  assert.equal((await ask(prompt, { content, profile: 'nobody' })).details?.[0]?.path, 'body.profile')
  assert.equal((await ask(prompt, { content, thinking: 'extreme' })).details?.[0]?.path, 'body.thinking')
  for (const [field, value] of Object.entries({ model: 'nobody/knows', thinking: 'extreme' })) {
    const answer = await ask(`${session}/profile`, { agent_config: { [field]: value } })
    assert.deepEqual([answer.code, answer.details?.[0]?.path], [40001, `body.agent_config.${field}`])
  }
})

test('a body that is nested too deeply is refused like any other bad body', async t => {
  const { ask, send, cwd } = await start(t)
  const nested = (depth: number) => `${'['.repeat(depth)}"]}"${']'.repeat(depth)}`
  const kept = JSON.parse(nested(100)) as unknown

  assert.equal((await ask('/sessions', { metadata: { cwd, kept, text: nested(5_000) } })).code, 0)
  for (const path of ['/sessions', '/config', '/workspaces']) {
    const answer = await send(path, { method: 'POST', body: `{"metadata":{"cwd":"/"},"thinking":{"x":${nested(5_000)}}}` })
    assert.deepEqual([answer.code, answer.details?.[0]?.path], [40001, 'body'], path)
  }
})

test('where several values are allowed, the message names them', async t => {
  const { ask, session } = await start(t)
  const cases: [path: string, body: unknown, field: string, message: string][] = [
    ['/config', { default_permission_mode: 'never' }, 'body.default_permission_mode', 'expected "manual", "yolo", "auto" or null'],
    ['/config', { telemetry: 'x' }, 'body.telemetry', 'expected boolean or null'],
    ['/config', { yolo: 'x' }, 'body.yolo', 'expected boolean or null'],
    ['/config', { loopControl: { maxStepsPerTurn: 'x' } }, 'body.loopControl.maxStepsPerTurn', 'expected integer or null'],
    [
      '/config',
      { permission: { rules: [{ decision: 'x', pattern: 'P' }] } },
      'body.permission.rules.0.decision',
      'expected "allow", "deny" or "ask"'
    ],
    [`${session}/prompts`, { content: [{ type: 'text' }] }, 'body.content.0.text', 'expected required property'],
    [
      `${session}/prompts`,
      { content: [{ type: 'image', source: { kind: 'disk' } }] },
      'body.content.0.source.kind',
      'expected "url", "base64", "file" or "session_media"'
    ],
    [
      `${session}/skills/write-skill:activate`,
      { attachments: [{ type: 'text', text: 'x' }] },
      'body.attachments.0.type',
      'expected "image", "video" or "file"'
    ]
  ]
  for (const [path, body, field, message] of cases) {
    assert.deepEqual((await ask(path, body)).details?.[0], { path: field, message })
  }
})
