import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { type CommandLine, type CommandName, commandSpecs } from '../../../features/cli/commands.ts'
import { readDeployment } from '../../../features/cli/deployment.ts'
import { flags } from '../../../features/cli/flags.ts'
import { commandHelp, helpText } from '../../../features/cli/help.ts'
import { checkPackNames, parseCommandLine, UsageError } from '../../../features/cli/options.ts'
import { freshDir } from '../../helpers/temp.ts'

const usage = (text: RegExp) => (error: Error) => error instanceof UsageError && text.test(error.message)

function line(...args: string[]): CommandLine {
  const parsed = parseCommandLine(args)
  if (parsed.kind !== 'run') throw new Error(`${args} is ${parsed.kind}`)
  return parsed
}

test('without words the command is serve, and repeatable flags collect', () => {
  const { command, flags } = line('--port', '0', '--disable', 'a', '--disable', 'b')
  assert.equal(command, 'serve')
  assert.equal(flags.port, '0')
  assert.deepEqual(flags.disable, ['a', 'b'])
})

test('a command has forms, of which the first needs no word, and takes as many words as its form', () => {
  assert.deepEqual([line('sessions').verb, line('sessions', 'list').verb], ['list', 'list'])
  assert.deepEqual(line('sessions', 'archive', 'a', 'b').words, ['a', 'b'])
  assert.deepEqual(line('run', 'what', 'is', 'this').words, ['what', 'is', 'this'])
  assert.deepEqual(line('run', '--', '--port').words, ['--port'])
  assert.equal(line('config', 'set', 'a.b', '1').verb, 'set')
})

test('an unknown option is answered with the one that was meant, or with all', () => {
  assert.throws(() => line('--prot', '1'), usage(/Did you mean --port\?/))
  assert.throws(() => line('--zzzzzzzz'), usage(/Known: --host, --port/))
})

test('an unknown command, a missing word and a stray one are refused with what belongs there', () => {
  assert.throws(() => line('tokn'), usage(/Did you mean token\?/))
  assert.throws(() => line('token', 'rotat'), usage(/Did you mean rotate\?\nusage: .*svc-code token rotate/s))
  assert.throws(() => line('packs', 'x', 'y'), usage(/'y' does not belong here.\nusage: svc-code packs/))
  assert.throws(() => line('pack'), usage(/^give one of new, check, .*\nusage: svc-code pack new <dir>/s))
  assert.throws(() => line('sessions', 'show'), usage(/<session> is missing.\nusage: svc-code sessions show <session>$/))
  assert.throws(() => line('config', 'set', 'a'), usage(/<value> is missing/))
  assert.throws(() => line('models', 'use', ''), usage(/<alias> is missing/))
})

test('an option belongs to certain commands, and any other says to which', () => {
  assert.equal(line('doctor', '--network', '--offline').command, 'doctor')
  assert.throws(() => line('packs', '--network'), usage(/--network does not belong to packs. It belongs to: svc-code doctor --network/))
  assert.throws(() => line('serve', '--yes'), usage(/svc-code run --yes, svc-code attach --yes/))
})

test('an option of one form is refused by the others, and the help of a form has those that it takes', () => {
  assert.equal(line('pack', 'dev', '--port', '0').flags.port, '0')
  assert.throws(
    () => line('pack', 'check', '--port', '0'),
    usage(/--port does not belong to pack check\. It belongs to: .*svc-code pack dev --port\.$/)
  )
  assert.throws(() => line('models', 'use', 'a', '--json'), usage(/--json does not belong to models use/))
  assert.equal(line('sessions', '--all').verb, 'list')

  const dev = commandHelp('pack', 'dev')
  assert.match(dev, /^usage\n {2}svc-code pack dev \[path\] \[options\] .*\n[\s\S]*--port <number>[\s\S]*--home <dir>/)
  assert.doesNotMatch(dev, /--in-process|pack new/)
  assert.match(commandHelp('pack'), /\noptions of pack add\n {2}--in-process /)
})

test('every command has examples, which its own command line understands', () => {
  for (const [name, { examples }] of Object.entries(commandSpecs)) {
    assert.ok(examples.length > 0, name)
    for (const [text] of examples) {
      assert.ok(commandHelp(name as CommandName).includes(`  ${text}`), text)
      for (const [, words = ''] of text.matchAll(/svc-code((?: (?:"[^"]*"|[^\s|)"]+))*)/g))
        assert.doesNotThrow(() => line(...[...words.matchAll(/"([^"]*)"|\S+/g)].map(([word, quoted]) => quoted ?? word)), text)
    }
  }
})

test('values are checked and the message says what is right', () => {
  assert.throws(() => line('--port', '70000'), usage(/0 to 65535/))
  assert.throws(() => line('--log-level', 'loud'), usage(/trace, debug, info/))
  assert.throws(() => line('--cors-origin', 'example.com/x'), usage(/scheme, host and port/))
  for (const origin of ['https://app.example:8443', 'chrome-extension://abcdef', 'vscode-webview://1x0', 'tauri://localhost', 'null'])
    assert.equal(line('--cors-origin', origin).command, 'serve', origin)
  for (const odd of ['file://', 'data:x', 'app://x/y', 'https://a.example:443', 'https://u@a.example', 'app://u@x', 'NULL'])
    assert.throws(() => line('--cors-origin', odd), usage(/scheme, host and port/), odd)
  assert.throws(() => line('--cors-origin', 'null', '--dangerous-bypass-auth'), usage(/any web page can call itself that/))
  assert.throws(() => line('--port'), usage(/--port needs a value: --port <number>.\n.*--help/))
  assert.throws(() => line('--host', '--port', '0'), usage(/--host needs a value/))
  assert.throws(() => line('status', '--home', ''), usage(/--home needs a value: --home <dir>\./))
  assert.throws(() => line('--pack', 'a', '--pack='), usage(/--pack needs a value/))
  assert.throws(() => line('--insecure-no-tls=yes'), usage(/--insecure-no-tls takes no value/))
  assert.throws(() => line('--no-help'), usage(/unknown option --no-help/))
  assert.throws(() => line('-x'), usage(/unknown option -x/))
  assert.throws(() => line('logs', '-n', 'few'), usage(/no number of lines/))
})

test('help is about everything, or about the command in front of it', () => {
  assert.deepEqual(parseCommandLine(['-h']), { kind: 'help', command: undefined, verb: undefined })
  assert.deepEqual(parseCommandLine(['run', '--help']), { kind: 'help', command: 'run', verb: undefined })
  assert.deepEqual(parseCommandLine(['pack', 'dev', '--help']), { kind: 'help', command: 'pack', verb: 'dev' })
  assert.deepEqual(parseCommandLine(['--version']), { kind: 'version' })
})

test('the help names every command and environment variable, and that of a command its words and options', () => {
  const text = helpText('1.2.3')
  for (const word of ['serve', 'run', 'attach', 'sessions', 'login', 'models', 'config', 'status', 'stop', 'open', 'logs', 'doctor']) {
    assert.ok(text.includes(`\n  ${word} `), word)
  }
  for (const word of ['SVC_CODE_OFFLINE', 'SVC_CODE_HOME', 'npx svc-code']) assert.ok(text.includes(word), word)
  const all = ['serve', 'run', 'sessions', 'login', 'stop', 'logs', 'doctor', 'pack', 'packs']
    .map(name => commandHelp(name as never))
    .join('')
  for (const word of [...Object.keys(flags).filter(name => name !== 'version')]) assert.ok(all.includes(`--${word}`), word)
  assert.match(commandHelp('sessions'), /svc-code sessions archive <session\.\.\.>\s+hide sessions/)
  assert.match(commandHelp('run'), /exit codes\n {2}0 /)
  assert.match(commandHelp('serve'), /\[packs\.replace\]/)
})

test('a pack name that nobody has is refused, with the one that was meant', () => {
  const known = ['tools-shell', 'agent']
  const check = (name: string) =>
    checkPackNames('disable', [name], known, problem => {
      throw problem
    })
  check('agent')
  assert.throws(() => check('tool-shell'), usage(/unknown pack 'tool-shell' .* Did you mean tools-shell\? svc-code packs lists them\.$/))
  assert.throws(() => check('weather'), usage(/^unknown pack 'weather' in --disable or \[packs\] disable\. svc-code packs lists them\.$/))
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
    ['[packs]\nfaults = 5\n', '2:1', /packs\.faults must be a table/],
    ['[packs.faults]\nlimit = 3\nwithin = 5\n', '3:1', /packs\.faults\.within is unknown/],
    ['[packs.faults]\nlimit = 0\nwithin_s = 5\n', '2:1', /packs\.faults\.limit must be a whole number of at least 1/],
    ['[packs]\nisolate = 5\n', '2:1', /packs\.isolate must be true, false or an array of strings/],
    ['[packs.isolation]\nmemory = 5\n', '2:1', /packs\.isolation\.memory is unknown/],
    ['[packs.isolation]\n\nhang_s = "5"\n', '3:1', /packs\.isolation\.hang_s must be a whole number/],
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
