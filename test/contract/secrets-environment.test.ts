/** Keys in the server's environment: used by the server, out of reach for the commands it runs. */
import assert from 'node:assert/strict'
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { serveWith } from '../helpers/cli.ts'
import { fakeUpstream } from '../helpers/fake-upstream.ts'
import { freshDir } from '../helpers/temp.ts'

test('neither the environment of the server nor that of its commands shows a key, and the server still uses it', {
  skip: process.platform !== 'linux'
}, async t => {
  const [home, cwd] = [await freshDir(), await freshDir()]
  const command = 'cat /proc/$PPID/environ | tr "\\0" "\\n" >server; env >own; echo seen'
  const upstream = await fakeUpstream(t, body => {
    const last = (body.messages as { role: string }[]).at(-1)
    return last?.role === 'tool' ? [{ text: 'done' }] : [{ tool: { name: 'Bash', args: { command }, id: 'c1' } }]
  })
  await writeFile(
    join(home, 'config.toml'),
    '[providers.q]\ntype = "compat_chat"\nbase_url = "http://127.0.0.1:9/v1"\napi_key = "hidden-key-of-q"\nenv = { Q_API_KEY = "hidden-in-table" }\n'
  )
  await appendFile(join(home, 'config.toml'), '[packs.config.tools-shell]\nhide_env = ["COMPANY_*"]\n')
  const server = await serveWith(
    t,
    {
      SVC_CODE_HOME: home,
      SVC_CODE_MODEL_NAME: 'm',
      SVC_CODE_MODEL_PROVIDER_TYPE: 'compat_chat',
      SVC_CODE_MODEL_BASE_URL: upstream.url,
      SVC_CODE_MODEL_API_KEY: 'hidden-model-key',
      WORK_LLM: 'hidden-key-of-q',
      Q_API_KEY: 'hidden-other-value',
      COMPANY_LOGIN: 'hidden-by-option',
      NPM_TOKEN: 'for-commands',
      PLAIN: 'for-commands-too'
    },
    '--port',
    '0'
  )
  const post = async (path: string, body: unknown) => {
    const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' }
    const answer = await fetch(`${server.url}/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return ((await answer.json()) as { data: { id: string } }).data
  }
  const { id } = await post('/sessions', { metadata: { cwd } })
  await post(`/sessions/${id}/prompts`, { content: [{ type: 'text', text: 'go' }], permission_mode: 'yolo' })
  const { body, headers } = await upstream.arrived(1)

  assert.equal((body.messages as { content: string }[]).at(-1)?.content, 'seen')
  assert.equal(headers.authorization, 'Bearer hidden-model-key')
  const [shown, own] = await Promise.all(['server', 'own'].map(name => readFile(join(cwd, name), 'utf8')))
  assert.match(shown ?? '', /^PATH=/m)
  assert.doesNotMatch(shown ?? '', /hidden|for-commands/)
  assert.match(own ?? '', /^NPM_TOKEN=for-commands$/m)
  assert.match(own ?? '', /^PLAIN=for-commands-too$/m)
  assert.doesNotMatch(own ?? '', /hidden/)
  assert.doesNotMatch(await readFile(`/proc/${server.child.pid}/environ`, 'latin1'), /hidden/)
})
