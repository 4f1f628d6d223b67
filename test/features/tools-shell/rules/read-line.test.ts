import assert from 'node:assert/strict'
import { mkdir, realpath, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { atPattern } from '../../../../features/tools-shell/rules/own-files.ts'
import { readLine } from '../../../../features/tools-shell/rules/read-line.ts'
import { freshDir } from '../../../helpers/temp.ts'

const cwd = '/srv/app'
/** Of an agent that works there, and runs the line there or elsewhere. */
const at = (base: string, dir = base) => ({
  shell: '/bin/bash',
  cwd: dir,
  around: { cwd: base, home: '/srv/home', agent_dir: '/srv/home/a' }
})

/** Whether these allowing rules together cover the line. */
async function covers(rules: string | readonly string[], line: string, dir = cwd): Promise<boolean> {
  const { parts } = await readLine(line, at(cwd, dir))
  return parts.every(part => [rules].flat().some(rule => part.covers(rule)))
}

/** What a denying rule makes of the line: `found`, `unsure` when a command does not tell its name, or nothing. */
async function named(rule: string, line: string): Promise<'found' | 'unsure' | undefined> {
  const { parts, uncertain } = await readLine(line, at(cwd))
  return parts.some(part => part.names(rule)) ? 'found' : uncertain ? 'unsure' : undefined
}

test('an allowing rule with a wildcard covers a line only when it covers each of its commands', async () => {
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
  for (const line of covered) assert.equal(await covers('git *', line), true, line)
})

test('nothing rides along with an allowed command', async () => {
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
    'git log <<EOF\n$(rm x)\nEOF',
    "git log # it's\nrm x #'",
    "git log $'a\\'; rm x #'",
    '(git log; rm x)',
    'git() { rm x; }',
    'FOO=1 git log',
    'GIT_DIR=/evil git log',
    'case $(rm x) in *) git log;; esac',
    'case x in $(rm x)) git log;; esac',
    '{ git log; } > p',
    'git log >&1p',
    'git log <<< "$(rm x)"',
    'sudo git log',
    "git log 'open; rm x"
  ]
  for (const line of refused) assert.equal(await covers('git *', line), false, line)
})

test('the parts of a line are checked against all rules together', async () => {
  assert.equal(await covers(['cd *', 'npm test*'], 'cd sub && npm test'), true)
  assert.equal(await covers(['git status', 'head *'], 'git status 2>&1 | head -3'), true)
  assert.equal(await covers(['npm test*'], 'cd sub && npm test'), false)
  assert.equal(await covers(['git *', 'test -f *'], 'if test -f x; then (git log; git diff) | { git shortlog; }; fi'), true)
  assert.equal(await covers(['git *'], 'for f in -c; do git $f; done'), false, 'a loop assigns')
})

test('without a wildcard a rule is the whole line, or one command of it', async () => {
  assert.equal(await covers('git log; rm \\*', 'git log; rm *'), true)
  assert.equal(await covers('git log; rm \\*', 'git log; rm *; rm y'), false)
  assert.equal(await covers('ls', 'ls\nls'), true)
  assert.equal(await covers('ls', 'ls >/dev/null'), true)
  for (const star of ['*', '**']) assert.equal(await covers(star, 'a; b $(c) > d'), true, 'a lone star allows everything')
})

test('redirections and substitutions are allowed where the rule itself spells them', async () => {
  assert.equal(await covers('echo * > out.txt', 'echo a b > out.txt'), true)
  assert.equal(await covers('echo * > out.txt', 'echo a > b > out.txt'), false)
  assert.equal(await covers('tag $(date) *', 'tag $(date) x'), true)
  assert.equal(await covers('tag $(date) *', 'tag $(date) $(rm x)'), false)
})

test('a rule with a wildcard counts in the directory of the session only', async () => {
  assert.equal(await covers('npm *', 'npm test', '/srv/app/sub'), false)
  assert.equal(await covers(['npm *', 'cd *'], 'npm test', '/srv/app/sub'), true)
  assert.equal(await covers("cd '/srv/app/sub' && npm test", 'npm test', '/srv/app/sub'), true)
  assert.equal(await covers("cd '/srv/app/it'\\\\''s' && npm test", 'npm test', "/srv/app/it's"), true)
})

test('a denying rule finds its command anywhere in the line', async () => {
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
  for (const line of found) assert.equal(await named('rm *', line), 'found', line)
})

test('a denying rule may be a whole line', async () => {
  assert.equal(await named('git log; ls', 'git log; ls'), 'found')
  assert.equal(await named('git log; ls', 'git log; pwd'), undefined)
})

test('what the line itself sets is covered by no wildcard where it could come out as a flag', async () => {
  const rules = ['cd *', 'find *', 'ls *', 'wc *']
  assert.equal(await covers(rules, 'find $PWD -name x'), true)
  assert.equal(await covers(rules, 'cd "a -delete b" && find $PWD'), false)
  assert.equal(await covers(rules, 'cd a && find "$PWD" -name x'), true)
  assert.equal(await covers(rules, 'ls *.ts && wc -l *'), true, 'no flag of theirs does any harm')
  assert.equal(await covers(rules, 'cd / && ls < etc/hosts'), false)
})

test('a harmless variable in front may stand in the rule, or not', async () => {
  for (const rule of ['npm *', 'NODE_ENV=* npm *', 'NODE_ENV=test npm test'])
    assert.equal(await covers(rule, 'NODE_ENV=test npm test'), true, rule)
  assert.equal(await covers('NODE_ENV=prod npm *', 'NODE_ENV=test npm test'), false)
})

test('a line that is too long is not taken apart', async () => {
  const line = `git log ${'a'.repeat(100_000)}`
  assert.equal(await covers('git *', line), false)
  assert.equal(await named('rm *', line), 'unsure')
  assert.deepEqual((await readLine(line, at(cwd))).accesses, [{ kind: 'read', path: '/srv/home' }], 'it may name anything')
  assert.equal(await named('rm *', `mytool ${'word '.repeat(2000)}rm x`), 'unsure', 'nor one with too many words')
})

test('the files of a line are those of its redirections, links followed, and those of the home', async () => {
  const dir = await realpath(await freshDir())
  await mkdir(join(dir, 'real'))
  await writeFile(join(dir, 'real/a'), '')
  await symlink(join(dir, 'real'), join(dir, 'there'))
  await symlink('/etc/hosts', join(dir, 'out'))
  const touched = async (line: string) => {
    const { accesses } = await readLine(line, at(join(dir, 'there')))
    return accesses.map(access => ('path' in access ? `${access.kind} ${access.path.replace(dir, '')}` : ''))
  }
  assert.deepEqual(await touched('ls < a > b 2>> c <> d >| e &> f'), [
    'read /real/a',
    'write /there/b',
    'write /there/c',
    'read /there/d',
    'write /there/d',
    'write /there/e',
    'write /there/f'
  ])
  assert.deepEqual(await touched('ls 2>&1 >/dev/null 3>&- < "$x" < ~other/y'), [])
  assert.deepEqual(await touched('{ ls < ../out; } > "b c"'), ['read /etc/hosts', 'write /there/b c'])
  for (const line of [
    'cat /srv/home/key',
    'x --file=/srv/home/key',
    'cd /srv; cat home/key',
    'pushd /srv/home; cat key',
    '(a $(b /srv/home/key))'
  ])
    assert.equal((await touched(line)).at(-1), 'read /srv/home/key', line)
  const { parts } = await readLine('cat /srv/home/key', at(dir))
  assert.equal(parts[0]?.covers('cat *'), false)
  assert.equal(parts[0]?.covers('cat /srv/home/*'), false)
  assert.equal(parts[0]?.covers('cat /srv/home/key'), true)
  const covered = async (line: string, place: string) => (await readLine(line, at(join(dir, place)))).parts[0]?.covers('cat *')
  assert.equal(await covered('cat < a', 'there'), true, 'the directory is reached by a link')
  assert.equal(await covered('cat < out', '.'), false)
  assert.equal(await covered('cat < ~root/x', '.'), false)
})

test('a file pattern stands for a directory that it fits', () => {
  assert.equal(atPattern('/srv/h*/key', '/srv/home'), '/srv/home/key')
  assert.equal(atPattern('/srv/[g-h]ome/key', '/srv/home'), '/srv/home/key')
  assert.equal(atPattern('/srv/*/key', '/srv/.home'), '/srv/*/key', 'hidden names are left out')
  assert.equal(atPattern('/srv/.*/key', '/srv/.home'), '/srv/.home/key')
  assert.equal(atPattern('/srv/x*/key', '/srv/home'), '/srv/x*/key')
})

test('a denying rule leaves mere mentions alone', async () => {
  for (const line of ['git commit -m "fix; rm the file"', 'echo rm x', 'warm x', 'ls rm']) {
    assert.equal(await named('rm *', line), undefined, line)
  }
})

test('what allows a program does not allow what makes it run or write something else', async () => {
  const refused: Readonly<Record<string, readonly string[]>> = {
    'git *': [
      "git -c alias.z='!touch p' z",
      'git -C /elsewhere log',
      'git diff --output=p',
      'git diff --outp=p',
      'git grep -Otouch x',
      'git --exec-path=. log',
      'git rebase -x "touch p" HEAD~1',
      'git submodule foreach touch',
      'git config core.pager touch',
      'git clone ext::touch x',
      'git bisect run touch p'
    ],
    'find *': ['find . -exec touch p \\;', 'find . -name a -delete', 'find . -fprint p', 'find . -okdir touch p \\;'],
    'sort *': ['sort -o p x', 'sort -uo p x', 'sort --outp=p x', 'sort --compress-program=touch x', 'sort *'],
    'sed *': [
      'sed w\\ p x',
      "sed -n 's/a/b/w p' x",
      "sed 's/a/touch p/e' x",
      "sed -e p -e 'w p' x",
      'sed -i s/a/b/ x',
      "sed --expression='w p' x"
    ],
    'xargs *': ['xargs touch', 'xargs -n1 touch'],
    'awk *': [`awk 'BEGIN { system("touch p") }'`, `awk '{ print > "p" }'`, 'awk -f p.awk'],
    'rg *': ['rg --pre touch x'],
    'tar *': ['tar -cf x --checkpoint-action=exec=touch y', 'tar -I touch -cf x y'],
    'env *': ['env touch p', 'env -S "touch p"', 'env A=b touch p'],
    'timeout *': ['timeout 5 touch p', 'timeout -s KILL 5 touch p'],
    'sudo git *': ["sudo git -c alias.z='!touch p' z"],
    'printf *': ["printf -v 'a[$(touch p)]' x", "printf -v'a[$(touch p)]' x"],
    'test *': ["test -v 'a[$(touch p)]'", "test x -a -v 'a[$(touch p)]'"],
    '[ *': ["[ -v 'a[$(touch p)]' ]"],
    '[[ *': ["[[ 'a[$(touch p)]' -eq 0 ]]", "[[ -v 'a[$(touch p)]' ]]"],
    'let *': ["let 'a[$(touch p)]'"],
    'read *': ["read 'a[$(touch p)]' <<< x"],
    'declare *': ["declare -i 'x=a[$(touch p)]'"],
    'export *': ['export PATH=.'],
    'eval *': ['eval touch p'],
    'trap *': ["trap 'touch p' EXIT"],
    '. *': ['. /dev/stdin <<<"touch p"'],
    'ls*': ['ls </dev/tcp/localhost/80', 'ls < /etc/hosts', 'ls < "$x"', 'cd / && ls < etc/hosts', 'ls {a,b}', 'ls <(touch p)']
  }
  for (const [rule, lines] of Object.entries(refused))
    for (const line of lines) assert.equal(await covers(rule, line), false, `${rule}: ${line}`)
})

test('what allows a program allows its ordinary use', async () => {
  const allowed: Readonly<Record<string, readonly string[]>> = {
    'git *': ['git log -p --stat', 'git commit -m "a: b"', 'git push -u origin main', 'git diff HEAD -- "*.ts"'],
    'find *': ['find . -name "*.ts" -print', 'find src -type f'],
    'sort *': ['sort -u x', 'sort -k2,2n -r x'],
    'sed *': ["sed -n '1,5p' x", "sed 's/a/b/g; s|c|d|' x", "sed -n -e '/x/p' y", "sed -E 's#(a)#\\1#' x"],
    'timeout 5 npm *': ['timeout 5 npm test'],
    'sudo git *': ['sudo git log'],
    'awk *': ["awk '{ print $1 }' x"],
    'cat *': ['cat <<EOF\nplain $name\nEOF', 'cat <<< "$name"', 'cat < notes/a.txt'],
    'test *': ['test -f x']
  }
  for (const [rule, lines] of Object.entries(allowed))
    for (const line of lines) assert.equal(await covers(rule, line), true, `${rule}: ${line}`)
})

test('a line that cannot be understood is covered by no wildcard and unsure under a denying rule', async () => {
  for (const line of ["git 'log", 'git log $(', 'git log &&', 'if git log', `${'('.repeat(300)}git log`]) {
    assert.equal(await covers('git *', line), false, line)
    assert.notEqual(await named('rm *', line), undefined, line)
  }
})

test('a command that breaks off is judged as it stands', async () => {
  assert.equal(await covers('find *', 'find . -exec'), false)
  assert.equal(await named('rm *', 'find . -exec'), undefined)
})

test('others have their turn while a long line is read', async () => {
  const cpu = () => Object.values(process.cpuUsage()).reduce((sum, each) => sum + each) / 1000
  for (const part of ['-exec a b \\; ', '-c a=b ', '../?{a,b}/$PWD* ']) {
    const read = async () => {
      let over = false
      let last = cpu()
      let longest = 0
      const turn = () => {
        longest = Math.max(longest, cpu() - last)
        last = cpu()
        if (!over) setImmediate(turn)
      }
      setImmediate(turn)
      const { parts } = await readLine(`${part.startsWith('-c') ? 'git' : 'find'} ${part.repeat(900)}`, at(cwd))
      assert.equal(parts.length, 1)
      over = true
      return longest
    }
    await read() // compiled
    const ms = await read()
    assert.ok(ms < 250, `${part} takes ${ms} ms at once`) // of all threads of this process, on a busy machine
  }
})

test('a long word is gone through once', async () => {
  const long = 45_000
  for (const line of [`curl '${'['.repeat(long)}'`, `curl '-${'F'.repeat(long)}'`, `python '${'a'.repeat(long)}'`]) {
    const before = process.cpuUsage()
    await readLine(line, at(cwd))
    const { user, system } = process.cpuUsage(before)
    assert.ok(user + system < 1_000_000, `${line.slice(0, 9)}: ${user + system} µs`)
  }
})

test('a home that is reached by a link is the same home', async () => {
  const dir = await realpath(await freshDir())
  await mkdir(join(dir, 'home'))
  await writeFile(join(dir, 'home/key'), '')
  await symlink(join(dir, 'home'), join(dir, 'link'))
  const around = { cwd, home: join(dir, 'link'), agent_dir: join(dir, 'link/a') }
  const { accesses } = await readLine(`cat ${join(dir, 'home/key')}`, { shell: 'sh', cwd, around })
  assert.deepEqual(accesses, [{ kind: 'read', path: join(dir, 'home/key') }])
})

test('a word names a file of the home however it leads there', async () => {
  const around = { cwd: '/srv/app', home: '/srv/user/.home', agent_dir: '/srv/user/.home/a' }
  const touched = async (line: string) => (await readLine(line, { shell: 'bash', cwd: '/srv/app', around })).accesses.length > 0
  const lines = [
    'cat ~user/.home/key',
    'cat ~-/.home/key',
    'cat ~+/../user/.home/key',
    'cd ~user && cat .home/key',
    'cat /proc/self/root/srv/user/.home/key',
    'cat /proc/$$/cwd/../user/.home/key',
    'grep -f/srv/user/.home/key x',
    'grep -rf../user/.home/key x',
    'cp -t/srv/user/.home a',
    'docker cp c:/srv/user/.home/x .',
    'gcc @/srv/user/.home/key',
    'x --mount=type=bind,source=/srv/user/.home,target=/y',
    'cd a; cd b; cd c; cd d; cd e; cd f; cd g; cd h; cd i; cd /srv/user; cat .home/key'
  ]
  for (const line of lines) assert.equal(await touched(line), true, line)
  for (const line of ['cat ~/x', 'cat ~+/x', 'cat ~user/x', 'cd a && cd .. && cat b', 'cp -t/srv/app a', 'curl http://localhost/a,b'])
    assert.equal(await touched(line), false, line)
})

test('a line costs time by its length, however hostile it is', async () => {
  for (const part of ['sudo ', '$(', '"$(', 'a;', "bash -c 'x;", '((', '`', "sudo 'a b' ", 'x=', '{a,', 'p;   ']) {
    const cost = async (times: number) => {
      const line = part.repeat(times)
      const before = process.cpuUsage()
      await named('rm *', line)
      await covers('a*b*c*', line)
      await covers('sed *', `sed '${line.replaceAll("'", '')}'`)
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 1000
    }
    await cost(1000) // compiled
    const ms = await cost(8000)
    assert.ok(ms < 3000, `${part} takes ${ms} ms`)
  }
})

test('words that come close to those of a known program cost no time', async () => {
  const before = process.cpuUsage().user
  await named('rm *', `eval "$(rbenv init${' --aaaaaaaa'.repeat(9)} !)"`)
  const ms = (process.cpuUsage().user - before) / 1000
  assert.ok(ms < 1000, `takes ${ms} ms`)
})
