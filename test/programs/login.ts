/**
 * A server of its own process with a login: asks for a token per line (`token`, `force`) and prints what it got. Arguments: home, origin of
 * the account.
 */
import { createInterface } from 'node:readline'
import { createKernel } from '../../kernel/kernel.ts'
import { withLogin } from '../features/oauth/scene.ts'

const [home = '', oauth_host = ''] = process.argv.slice(2)
const { login, packs } = withLogin()
const kernel = await createKernel({
  home,
  packs,
  port: 0,
  log: { level: 'silent' },
  config: { oauth: { client_id: 'client-1', oauth_host, api_base_url: `${oauth_host}/v1`, poll_unit_ms: 1 } }
})
await kernel.start()
const say = (text: string) => process.stdout.write(`${text}\n`)
createInterface({ input: process.stdin }).on('line', line => {
  login()
    .accessToken('managed:svc-code', { force: line === 'force' })
    .then(
      token => say(token ?? 'none'),
      (error: Error) => say(`failed: ${error.message}`)
    )
})
say('ready')
