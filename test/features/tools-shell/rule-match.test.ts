import assert from 'node:assert/strict'
import { test } from 'node:test'
import { coversLine, namesCommand } from '../../../features/tools-shell/rule-match.ts'

test('an allowing rule with a wildcard covers a line only when it covers each of its commands', () => {
  const covered = [
    'git status',
    '  git   status  ',
    'git status; git log',
    'git fetch && git log | git shortlog',
    'git log\ngit status',
    'git log &',
    'git commit -m "fix; rm -rf x"',
    "git commit -m 'a && b | c > d `e` $(f)'",
    'git log 2>&1',
    'git log >/dev/null 2>&1',
    'git apply < patch',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: shell text
    'git log "$branch" ${other} $1',
    'git log \\; x',
    'git commit -m "a \\" ; b"'
  ]
  for (const line of covered) assert.equal(coversLine('git *', line), true, line)
})

test('nothing rides along with an allowed command', () => {
  const refused = [
    'git status; rm -rf x',
    'git status;rm -rf x',
    'git status && rm x',
    'git status || rm x',
    'git log | sh',
    'git log |& sh',
    'git log & rm x',
    'git status\nrm x',
    'rm x; git status',
    'git log $(rm x)',
    'git log "$(rm x)"',
    'git log `rm x`',
    'git log "`rm x`"',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: shell text
    'git log ${x:-$(rm x)}',
    'git log $[$(rm x)]',
    'git diff <(rm x)',
    'git log >(sh)',
    'git log > .bashrc',
    'git log >> .bashrc',
    'git log >| x',
    'git log &> x',
    'git log >& x',
    'git log > /dev/null/../../etc/x',
    'git log <> x',
    'git log <<EOF\nrm x\nEOF',
    "git log # it's\nrm x #'",
    "git log $'a\\'; rm x #'",
    '(git log; rm x)',
    'git() { rm x; }',
    'FOO=1 git log',
    'sudo git log',
    "git log 'open; rm x"
  ]
  for (const line of refused) assert.equal(coversLine('git *', line), false, line)
})

test('operators, redirections and substitutions count as allowed where the rule itself has them', () => {
  assert.equal(coversLine('cd * && npm test', 'cd sub && npm test'), true)
  assert.equal(coversLine('cd * && npm test', 'cd sub; rm -rf x && npm test'), false)
  assert.equal(coversLine('echo * > out.txt', 'echo a b > out.txt'), true)
  assert.equal(coversLine('echo * > out.txt', 'echo a > b > out.txt'), false)
  assert.equal(coversLine('tag $(date) *', 'tag $(date) x'), true)
  assert.equal(coversLine('tag $(date) *', 'tag $(date) $(rm x)'), false)
  assert.equal(coversLine('git log; rm \\*', 'git log; rm *'), true, 'an exact rule covers its own text')
  assert.equal(coversLine('git log; rm \\*', 'git log; rm *; rm y'), false)
  assert.equal(coversLine('*', 'a; b $(c) > d'), true, 'a lone star allows everything')
  assert.equal(coversLine('ls', 'ls\nls'), true)
})

test('a denying rule finds its command anywhere in the line', () => {
  const found = [
    'rm -rf x',
    'git status; rm -rf x',
    'true && rm x',
    'echo a | xargs rm x',
    'echo "$(rm x)"',
    'echo `rm x`',
    '(cd y; rm x)',
    '{ rm x; }',
    'if true; then rm x; fi',
    'for f in a; do rm $f; done',
    'FOO=1 rm x',
    '2>/dev/null rm x',
    '> out rm x',
    'sudo -u root rm x',
    'env A=b /bin/rm x',
    '/bin/rm x',
    "'rm' x",
    'r\\m x',
    'rm   x',
    'bash -c "cd /; rm x"',
    "eval 'true && rm x'",
    'find . -exec rm {} \\;',
    'git log # x\nrm x'
  ]
  for (const line of found) assert.equal(namesCommand('rm *', line), true, line)
})

test('a denying rule leaves mere mentions alone', () => {
  for (const line of ['git commit -m "fix; rm the file"', 'echo rm x', 'warm x', 'ls rm']) {
    assert.equal(namesCommand('rm *', line), false, line)
  }
})

test('a line costs time by its length, however hostile it is', () => {
  for (const part of ['sudo ', '$(', '"$(', 'a;', "bash -c 'x;", '((', '`']) {
    const cost = (times: number) => {
      const line = part.repeat(times)
      const before = process.cpuUsage()
      namesCommand('rm *', line)
      coversLine('a*b*c*', line)
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 1000
    }
    cost(1000) // compiled
    const ms = cost(50_000)
    assert.ok(ms < 2000, `${part} takes ${ms} ms`)
  }
})
