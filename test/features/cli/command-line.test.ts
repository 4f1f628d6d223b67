import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { readDeployment } from '../../../features/cli/deployment.ts'
import { checkPackNames, helpText, parseCommandLine, UsageError } from '../../../features/cli/options.ts'
import { freshDir } from '../../helpers/temp.ts'

const usage = (text: RegExp) => (error: Error) => error instanceof UsageError && text.test(error.message)

test('without words the command is serve, and repeatable flags collect', () => {
  const line = parseCommandLine(['--port', '0', '--disable', 'a', '--disable', 'b'])
  assert.equal(line.command, 'serve')
  assert.equal(line.flags.port, '0')
  assert.deepEqual(line.flags.disable, ['a', 'b'])
})

test('an unknown option is answered with the one that was meant, or with all', () => {
  assert.throws(() => parseCommandLine(['--prot', '1']), usage(/Did you mean --port\?/))
  assert.throws(() => parseCommandLine(['--zzzzzzzz']), usage(/Known: --host, --port/))
})

test('an unknown command and stray words are refused with what belongs there', () => {
  assert.throws(() => parseCommandLine(['tokn']), usage(/Did you mean token\?/))
  assert.throws(() => parseCommandLine(['token', 'rotat']), usage(/svc-code token \[rotate\]/))
  assert.throws(() => parseCommandLine(['packs', 'x']), usage(/takes no further words/))
})

test('doctor looks at the network, and the flag for it belongs to no other command', () => {
  assert.equal(parseCommandLine(['doctor', '--network', '--offline']).command, 'doctor')
  assert.throws(() => parseCommandLine(['doctor']), usage(/doctor --network/))
  assert.throws(() => parseCommandLine(['packs', '--network']), usage(/doctor --network/))
})

test('values are checked and the message says what is right', () => {
  assert.throws(() => parseCommandLine(['--port', '70000']), usage(/0 to 65535/))
  assert.throws(() => parseCommandLine(['--log-level', 'loud']), usage(/trace, debug, info/))
  assert.throws(() => parseCommandLine(['--cors-origin', 'example.com/x']), usage(/scheme, host and port/))
  assert.throws(() => parseCommandLine(['--port']), usage(/--port needs a value: --port <number>.\n.*--help/))
  assert.throws(() => parseCommandLine(['--host', '--port', '0']), usage(/--host needs a value/))
  assert.throws(() => parseCommandLine(['--insecure-no-tls=yes']), usage(/--insecure-no-tls takes no value/))
  assert.throws(() => parseCommandLine(['--no-help']), usage(/unknown option --no-help/))
  assert.throws(() => parseCommandLine(['-x']), usage(/unknown option -x/))
  assert.equal(parseCommandLine(['-h']).command, 'help')
})

test('the help names every option, command and environment variable', () => {
  const text = helpText('1.2.3')
  for (const word of [
    '--host',
    '--port',
    '--home',
    '--log-level',
    '--dangerous-bypass-auth',
    '--allow-remote-shutdown',
    '--debug-endpoints'
  ]) {
    assert.ok(text.includes(word), word)
  }
  for (const word of [
    '--insecure-no-tls',
    '--allowed-host',
    '--cors-origin',
    '--pack',
    '--disable',
    '--require',
    '--offline',
    'doctor --network',
    'SVC_CODE_OFFLINE',
    'token [rotate]',
    'instances',
    'SVC_CODE_HOME'
  ]) {
    assert.ok(text.includes(word), word)
  }
})

test('a pack name that nobody has is refused, with the one that was meant', () => {
  const known = ['tools-shell', 'agent']
  checkPackNames('disable', ['agent'], known)
  assert.throws(() => checkPackNames('disable', ['tool-shell'], known), usage(/unknown pack 'tool-shell' .*Did you mean tools-shell\?/))
})

test('the table of packs is found however its name is written', async () => {
  const home = await freshDir()
  const lines = [
    '[packs]\ndisable = ["a"]',
    '[ "packs" ]\ndisable = ["a"]',
    '[\'packs\']\ndisable = ["a"]',
    'packs.disable = ["a"]',
    '"packs" = { disable = ["a"] }'
  ]
  for (const line of lines) {
    await writeFile(join(home, 'config.toml'), `# packs of this machine\n${line}\n`)
    assert.deepEqual((await readDeployment({ home }, {})).disable, ['a'], line)
  }
})
