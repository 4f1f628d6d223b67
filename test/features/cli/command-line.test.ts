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

test('any fault of a configuration that mentions packs is refused with file, line and column', async () => {
  const home = await freshDir()
  const file = join(home, 'config.toml')
  const cases: readonly [text: string, place: string, words: RegExp][] = [
    ['[packs\ndisable = ["a"]\n', '1:', /cannot be parsed/],
    ['default_model = "m"\n\n[[packs]]\ndisable = ["a"]\n', '3:1', /packs must be a table/],
    ['model = "x\n[packs]\ndisable = ["a"]\n', '1:', /cannot be parsed/],
    ['"pack\\u0073" = 5\n', '1:1', /packs must be a table/],
    ['[packs]\n\n  disabled = ["a"]\n', '3:3', /packs\.disabled is unknown/],
    ['packs = { load = [], disabled = ["a"] }\n', '1:1', /packs\.disabled is unknown/],
    ['[packs]\nload = []\ndisable = "a"\n', '3:1', /packs\.disable must be an array of strings/],
    ['packs.require = [1]\n', '1:1', /packs\.require must be an array of strings/],
    ['[packs]\nconfig = 5\n', '2:1', /packs\.config must be a table/],
    ['[packs.config]\nx = 1\nagent = 5\n[packs.config.llm]\n', '2:1', /packs\.config\.x must be a table/],
    ['[ packs . replace ]\nvoice = 5\n', '2:1', /packs\.replace\.voice must be the name of a pack/],
    ['[packs]\ndisable = []\n[packs]\nload = []\n', '3:', /cannot be parsed/]
  ]
  for (const [text, place, words] of cases) {
    await writeFile(file, text)
    await assert.rejects(
      readDeployment({ home }, {}),
      (error: Error) => error.message.startsWith(`${file}:${place}`) && words.test(error.message),
      text
    )
  }
})

test('a broken configuration that does not mention packs is left to the config pack', async () => {
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), 'default_model = "a\n')
  assert.deepEqual((await readDeployment({ home }, {})).disable, [])
})
