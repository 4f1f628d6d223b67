// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shell text
/** Rules on shell lines as the server applies them: one syntax tree serves allow, ask and deny. Each row is a call in a turn of the full server. */
import assert from 'node:assert/strict'
import { readdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { conversation } from '../helpers/conversation.ts'

/** Lines that delete `x`; those in `asked` do not tell which command they run. */
const deny = {
  denied: [
    'rm</dev/null -f x',
    'rm>/dev/null -f x',
    'time -p rm -f x',
    'function f { rm -f x; }; f',
    'coproc N { rm -f x; }',
    'a[0]=1 rm -f x',
    '{fd}</dev/null rm -f x',
    'bash <<<"rm -f x"',
    "trap 'rm -f x' EXIT",
    'flock f rm x',
    "script -qc 'rm x'",
    "script -qc'rm x'",
    ". /dev/stdin <<<'rm x'",
    "mapfile -C 'rm x;' -c 1 <<< a",
    'echo x | xargs rm',
    "git -c alias.z='!rm x' z",
    `find . ${'-name a -o '.repeat(8)}-name x -exec rm {} \\;`,
    `env ${Array.from({ length: 30 }, (_, at) => `A${at}=1`).join(' ')} rm x`,
    "$'\\x72m' x",
    '\\rm x',
    '"r"m x',
    'command rm x',
    'exec -a other rm x',
    'if ! rm x; then :; fi',
    'case a in a) rm x;; esac',
    'while rm x; do :; done',
    'echo $((a[$(rm x)]))',
    "printf -v 'a[$(rm x)]' y",
    "[[ 'a[$(rm x)]' -eq 0 ]]",
    'echo ${a:-$(rm x)}',
    'cat <(rm x)',
    'cat <<EOF\n$(rm x)\nEOF',
    'sh -c "sh -c \'rm x\'"',
    'sudo sh -ec "rm x"',
    "PAGER='rm x' git log",
    'busybox rm x',
    'git bisect run rm x',
    "git submodule foreach 'rm x'",
    'hash -p /bin/rm ls; ls x',
    "r''m x; echo 'unfinished",
    'nohup nice -n 5 timeout -k 1 9 rm x',
    'shopt -s expand_aliases; alias q=rm\nq x',
    'shopt -s expand_aliases; BASH_ALIASES[q]="rm x"\nq',
    'BASH_CMDS[q]=/bin/rm; q x',
    "PS4='$(rm x)'; set -x; :",
    "v='a[$(rm x)]'; echo $((v))",
    "v='a[$(rm x)]'; let v",
    "v='a[$(rm x)]'; [[ v -eq 0 ]]",
    "v='$(rm x)'; echo ${v@P}",
    "declare -n v='a[$(rm x)]'; echo $v",
    'V="!rm x" git --config-env=alias.z=V z',
    'GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.z GIT_CONFIG_VALUE_0="!rm x" git z',
    'git init -q .; git config alias.z "!rm x"; git z',
    'export PAGER="rm x"; git log',
    'linux64 rm x',
    'prlimit --nofile=9 rm x',
    'setpriv rm x',
    '/lib64/ld-linux-x86-64.so.2 /bin/rm x',
    'jobs -x rm x',
    'npx rm x',
    'npm exec -c "rm x"',
    "tmux new -d 'rm x'",
    'ln -s /bin/rm z; ./z x',
    'cp /usr/bin/rm z; ./z x',
    'awk \'BEGIN { system("rm x") }\'',
    'awk \'BEGIN { "rm x" | getline }\'',
    "sed '1e rm x' y",
    "sed 's/.*/rm x/e' y",
    'perl -e \'exec "rm", "x"\'',
    'python3 -c \'import os; os.system("rm x")\'',
    "vim -c '!rm x' -c q",
    "ed <<< '!rm x'",
    "make -f - <<< $'a:\\n\\trm x'",
    'tar -c -I "rm x" -f y .',
    'tar -c --checkpoint=1 --checkpoint-action=exec="rm x" -f y .',
    "split --filter='rm x' y"
  ],
  asked: [
    '$x rm',
    'rm${IFS}-f x',
    '{rm,-f,x}',
    '/bin/r? x',
    'r$(true)m x',
    'env $x x',
    'eval "$x"',
    'bash -c "$x"',
    'echo cm0gLWYgeAo= | base64 -d | sh',
    'bash < /dev/stdin',
    '. <(echo rm x)',
    'echo "rm x" | xargs -I% sh -c %',
    'echo rm x | xargs -0 sh -c',
    'echo rm x | xargs nice',
    'find /bin -name "r?" -exec {} x \\;',
    "printf 'a:\\n\\trm x' | make -f -",
    'base64 -d y | python3',
    "echo 'unfinished"
  ]
}

for (const permission_mode of ['manual', 'yolo', 'auto']) {
  test(`in ${permission_mode} mode no line gets a denied command past its rule`, async t => {
    const { turn, cwd } = await conversation(t, {
      toml: 'permission.rules = [{ decision = "deny", pattern = "Bash(rm *)" }, { decision = "allow", pattern = "Bash(*)" }]'
    })
    await writeFile(join(cwd, 'x'), '')
    const lines = [...deny.denied, ...deny.asked]
    const { asked, results } = await turn(
      lines.map(command => ['Bash', { command }]),
      { permission_mode },
      { decision: 'rejected' }
    )
    for (const [index, line] of lines.entries()) assert.equal(results[index]?.is_error, true, line)
    for (const [index, line] of deny.denied.entries())
      assert.match(results[index]?.output ?? '', /A permission rule of the user forbids/, line)
    assert.deepEqual(
      asked,
      deny.asked.map(line => `Running: ${line}`)
    )
    assert.deepEqual(await readdir(cwd), ['x'])
  })
}

test('an ask rule asks for a command that does not tell its name, a remembered answer is enough, and mere mentions pass', async t => {
  const { turn } = await conversation(t, {
    toml: 'permission.rules = [{ decision = "ask", pattern = "Bash(rm *)" }, { decision = "allow", pattern = "Bash(*)" }]'
  })
  const { asked } = await turn([['Bash', { command: '$x a' }]], {}, { decision: 'approved', scope: 'session' })
  assert.deepEqual(asked, ['Running: $x a'])
  const { asked: more } = await turn([
    ['Bash', { command: '$x a' }],
    ['Bash', { command: 'echo rm x; : git commit -m "rm the file"' }]
  ])
  assert.deepEqual(more, [])
})

/** Lines that would run `touch p`, write `p` or reach a port, by the rule that does not stand for that. */
const allow: Readonly<Record<string, readonly string[]>> = {
  'printf *': [
    "printf -v 'a[$(touch p)]' x",
    "printf %s -v; printf $_ 'a[$(touch p)]' x",
    "printf %s -v && printf ${_} 'a[$(touch p)]' x",
    "printf -? 'a[$(touch p)]' x",
    "printf [-]v 'a[$(touch p)]' x"
  ],
  'test *': ["test -v 'a[$(touch p)]'", "test -? 'a[$(touch p)]'"],
  '[[ *': ["[[ 'a[$(touch p)]' -eq 0 ]]"],
  'let *': ["let 'a[$(touch p)]'"],
  'read *': ["read 'a[$(touch p)]' <<< x"],
  'declare *': ["declare -i 'x=a[$(touch p)]'"],
  'git *': ["git -c alias.z='!touch p' z", 'git diff --no-index --output=p x y', 'git archive -o p HEAD', "git c?nfig alias.z '!touch p'"],
  'find *': [
    'find . -maxdepth 0 -exec touch p \\;',
    'find . -name nothing -delete',
    'find . -exe? touch p \\;',
    'find . "$BASH_EXECUTION_STRING"',
    'find . $BASH_REMATCH touch p \\;'
  ],
  'tar *': ['tar cIf touch p x'],
  'jobs *': ['jobs -x touch p'],
  'sort *': ['sort -o p x'],
  'sed *': ["sed 'w p' x"],
  'xargs *': ['xargs touch p'],
  'ls*': ['ls </dev/tcp/127.0.0.1/PORT', 'ls < /etc/passwd', 'ls/../touch p'],
  'echo *': ['echo a; touch p', 'echo $(touch p)', 'echo a > p', 'echo `touch p`'],
  '!rm *': ['ls; rm x', 'ls; $x', 'sudo rm x', 'rm x 2>&1 | cat']
}

test('a rule that allows with a wildcard does not stand for what runs, writes or reads something else', async t => {
  let connections = 0
  const listener = createServer(socket => {
    connections++
    socket.destroy()
  })
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
  t.after(() => listener.close())
  const port = String((listener.address() as { port: number }).port)
  for (const [rule, rows] of Object.entries(allow)) {
    const { turn, cwd } = await conversation(t, { toml: `permission.allow = [{ tool = "Bash", match = ${JSON.stringify(rule)} }]` })
    await writeFile(join(cwd, 'x'), 'text\n')
    const lines = rows.map(line => line.replace('PORT', port))
    const { asked } = await turn(
      lines.map(command => ['Bash', { command }]),
      {},
      { decision: 'rejected' }
    )
    assert.deepEqual(
      asked,
      lines.map(line => `Running: ${line}`),
      rule
    )
    assert.deepEqual(await readdir(cwd), ['x'], rule)
  }
  assert.equal(connections, 0)
})

test('what a denying rule with `!` leaves is read narrowly: one command and nothing that rides along', async t => {
  const { turn, cwd } = await conversation(t, {
    toml: 'permission.rules = [{ decision = "deny", pattern = "Bash(!echo *)" }, { decision = "allow", pattern = "Bash(*)" }]'
  })
  const denied = ['env echo a', 'echo a > p', 'echo a; touch p', 'echo $(touch p)', 'A=1 echo a', 'cat x']
  const { asked, results } = await turn([...denied, 'echo a'].map(command => ['Bash', { command }]))
  assert.deepEqual(asked, [])
  for (const [index, line] of denied.entries()) assert.match(results[index]?.output ?? '', /forbids/, line)
  assert.equal(results.at(-1)?.output, 'a')
  assert.deepEqual(await readdir(cwd), [])
})

test('the parts of a line are checked against all rules together, and a wildcard rule binds the directory', async t => {
  const patterns = ['cd *', 'npm test*', 'git status', 'head *', 'true*']
  const rules = patterns.map(pattern => `{ decision = "allow", pattern = "Bash(${pattern})" }`).join(', ')
  const { turn, cwd } = await conversation(t, { toml: `permission.rules = [${rules}]` })
  await writeFile(join(cwd, 'package.json'), '{ "scripts": { "test": "true" } }')
  const { asked } = await turn(
    [
      ['Bash', { command: 'cd . && npm test --silent' }],
      ['Bash', { command: 'git status 2>&1 | head -3' }],
      ['Bash', { command: 'cd . && npm install' }]
    ],
    {},
    { decision: 'rejected' }
  )
  assert.deepEqual(asked, ['Running: cd . && npm install'])

  const bound = await conversation(t, { toml: 'permission.rules = [{ decision = "allow", pattern = "Bash(true *)" }]' })
  const elsewhere = await bound.turn(
    [
      ['Bash', { command: 'true a' }],
      ['Bash', { command: 'true b', cwd: '/tmp' }]
    ],
    {},
    { decision: 'rejected' }
  )
  assert.deepEqual(elsewhere.asked, ['Running: true b'])
})

test('rules about files hold for redirections', async t => {
  const { turn, cwd } = await conversation(t, {
    toml: 'permission.deny = [{ tool = "Read", match = "secret/**" }, { tool = "Write", match = "kept.txt" }]'
  })
  const { results, asked } = await turn(
    [
      ['Bash', { command: 'cat < secret/a' }],
      ['Bash', { command: 'echo a > kept.txt' }],
      ['Bash', { command: 'cat < .env' }],
      ['Bash', { command: 'cat <> secret/a' }],
      ['Bash', { command: 'cat <> kept.txt' }]
    ],
    { permission_mode: 'yolo' },
    { decision: 'rejected' }
  )
  assert.match(results[0]?.output ?? '', /forbids/)
  assert.match(results[1]?.output ?? '', /forbids/)
  for (const both of results.slice(3)) assert.match(both.output, /forbids/)
  assert.deepEqual(asked, ['Running: cat < .env'], 'a sensitive file is asked for in yolo mode, too')
  assert.deepEqual(await readdir(cwd), [])
})
