/** Keys in the server's environment: used by the server, out of reach for the commands it runs. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { apart } from '../../features/tools-shell/apart.ts'
import { serveWith } from '../helpers/cli.ts'
import { fakeUpstream } from '../helpers/fake-upstream.ts'
import { freshDir } from '../helpers/temp.ts'

/** The server with these lines of configuration, after one command of Bash: what the model was told, and with which headers. */
async function after(t: TestContext, command: string, toml: string, env: Readonly<Record<string, string>>) {
  const [home, cwd] = [await freshDir(), await freshDir()]
  const upstream = await fakeUpstream(t, body => {
    const last = (body.messages as { role: string }[]).at(-1)
    return last?.role === 'tool' ? [{ text: 'done' }] : [{ tool: { name: 'Bash', args: { command }, id: 'c1' } }]
  })
  await writeFile(join(home, 'config.toml'), toml)
  const model = { NAME: 'm', PROVIDER_TYPE: 'compat_chat', BASE_URL: upstream.url, API_KEY: 'hidden-model-key' }
  const variables = Object.fromEntries(Object.entries(model).map(([name, value]) => [`SVC_CODE_MODEL_${name}`, value]))
  const server = await serveWith(t, { SVC_CODE_HOME: home, ...variables, ...env }, '--port', '0')
  const post = async (path: string, body: unknown) => {
    const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' }
    const answer = await fetch(`${server.url}/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return ((await answer.json()) as { data: { id: string } }).data
  }
  const { id } = await post('/sessions', { metadata: { cwd } })
  await post(`/sessions/${id}/prompts`, { content: [{ type: 'text', text: 'go' }], permission_mode: 'yolo' })
  const { body, headers } = await upstream.arrived(1)
  return { cwd, server, headers, output: (body.messages as { content: string }[]).at(-1)?.content ?? '' }
}

test('neither the environment of the server nor that of its commands shows a key, and the server still uses it', {
  skip: process.platform !== 'linux'
}, async t => {
  const toml =
    '[providers.q]\ntype = "compat_chat"\nbase_url = "http://127.0.0.1:9/v1"\napi_key = "hidden-key-of-q"\nenv = { Q_API_KEY = "hidden-in-table" }\n' +
    '[packs.config.tools-shell]\nhide_env = ["COMPANY_*"]\n'
  const { cwd, server, headers, output } = await after(t, 'cat /proc/$PPID/environ | tr "\\0" "\\n" >server; env >own; echo seen', toml, {
    WORK_LLM: 'hidden-key-of-q',
    Q_API_KEY: 'hidden-other-value',
    COMPANY_LOGIN: 'hidden-by-option',
    NPM_TOKEN: 'for-commands',
    PLAIN: 'for-commands-too'
  })

  assert.equal(output, 'seen')
  assert.equal(headers.authorization, 'Bearer hidden-model-key')
  const [shown, own] = await Promise.all(['server', 'own'].map(name => readFile(join(cwd, name), 'utf8')))
  assert.match(shown ?? '', /^PATH=/m)
  assert.doesNotMatch(shown ?? '', /hidden|for-commands/)
  assert.match(own ?? '', /^NPM_TOKEN=for-commands$/m)
  assert.match(own ?? '', /^PLAIN=for-commands-too$/m)
  assert.doesNotMatch(own ?? '', /hidden/)
  assert.doesNotMatch(await readFile(`/proc/${server.child.pid}/environ`, 'latin1'), /hidden/)
})

test('commands that are kept apart by the configuration see nothing of the memory of the server', {
  skip: 'refusal' in (await apart())
}, async t => {
  const command = '(head -c 1 /proc/$PPID/maps; head -c 1 /proc/$PPID/environ; id -u) 2>&1'
  const { output } = await after(t, command, '[packs.config.tools-shell]\nkeep_apart = true\n', {})
  assert.match(output, new RegExp(`maps.*denied\\n.*environ.*denied\\n${process.getuid?.()}$`))
})
