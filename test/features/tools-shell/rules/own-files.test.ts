// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shell text
/** Lines that reach what belongs to the server's home are asked for, whatever allows them; others are not. */
import assert from 'node:assert/strict'
import fs, { link, mkdir, realpath, symlink, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { decide } from '../../../../features/permissions/chain.ts'
import { rulesOf } from '../../../../features/permissions/rules.ts'
import { OwnFiles } from '../../../../features/tools-shell/rules/own-files.ts'
import { readLine } from '../../../../features/tools-shell/rules/read-line.ts'
import { freshDir } from '../../../helpers/temp.ts'
import { bash } from './judge.ts'

const programs = 'cat cd grep rg find tar cp rsync zip head ls diff git make echo xargs wc du rm mkdir npm cmake ln mv sed fd docker'.split(
  ' '
)

/** A user's directory with a project beside the home of the server. */
async function scene(t: TestContext, homeName = '.svc-code', cwdName = 'proj') {
  const user = await realpath(await freshDir())
  const home = join(user, homeName)
  const cwd = join(user, cwdName)
  for (const dir of [join(home, 'agent'), join(cwd, 'sub/deep'), join(user, 'other/src'), join(user, 'proj/src')])
    await mkdir(dir, { recursive: true })
  await writeFile(join(home, 'config.toml'), 'api_key = "x"')
  await writeFile(join(cwd, 'lines'), '')
  const before = process.env.HOME
  process.env.HOME = user
  t.after(() => {
    if (before === undefined) delete process.env.HOME
    else process.env.HOME = before
  })
  const around = { home, cwd, agent_dir: join(home, 'agent') }
  /** Whether the line is asked for in manual mode where every program of it is allowed, and in yolo mode. */
  const asked = async (line: string) => {
    const execution = {
      description: line,
      ...(await readLine(line, { shell: '/bin/bash', cwd, around })),
      run: async () => ({ output: '' })
    }
    const judged = async (mode: 'manual' | 'yolo', allow: readonly string[]) => {
      const call = { tool: 'Bash', mode, rules: rulesOf({ allow: bash(...allow) }), remembered: [], unsure: false, execution }
      return (await decide({ ...call, ...around, workTree: async () => undefined })).kind
    }
    const patterns = programs.flatMap(name => [name, `${name} *`])
    return { manual: (await judged('manual', patterns)) === 'ask', yolo: (await judged('yolo', [])) === 'ask' }
  }
  /** The lines that are judged otherwise. */
  const wrong = async (lines: readonly string[], modes: readonly ('manual' | 'yolo')[], expected: boolean) => {
    const found: string[] = []
    for (const line of lines) {
      const judged = await asked(line)
      for (const mode of modes) if (judged[mode] !== expected) found.push(`${mode}: ${line}`)
    }
    return found
  }
  return {
    user,
    home,
    cwd,
    asked: async (lines: readonly string[]) => assert.deepEqual(await wrong(lines, ['manual', 'yolo'], true), []),
    free: async (lines: readonly string[]) => assert.deepEqual(await wrong(lines, ['manual', 'yolo'], false), []),
    /** No wildcard stands for something else in these. */
    freeInYolo: async (lines: readonly string[]) => assert.deepEqual(await wrong(lines, ['yolo'], false), [])
  }
}

test('file patterns, brace lists and variables name the home as its path does', async t => {
  const { asked, free, freeInYolo } = await scene(t)
  await asked([
    'cat ~/.svc-code/config.toml',
    'cat ~/.svc-cod?/config.toml',
    'cat ~/.s*/config.toml',
    'cat ../.svc*/config.toml',
    'cat $HOME/.svc-c*/config.toml',
    'cat ~/.[r-t]vc-code/config.toml',
    'cat ~/.SVC-COD?/config.toml',
    'cat ~/{.svc-code,x}/config.toml',
    'cat ../.svc-{code,x}/config.toml',
    "cat ~/.svc-{'code',{x,y}}/config.toml",
    'cat ~/.{r..t}vc-code/config.toml',
    'cat ~/{{x},.svc-code}/config.toml',
    'cat {~,/srv}/.svc-code/config.toml',
    'x=.svc-code; cat ~/$x/config.toml',
    'x=~; y=$x/.svc-code; cat $y/config.toml',
    'for d in ../.s* y; do cat $d/config.toml; done',
    'cat $(pwd)/../.svc-code/config.toml',
    'cat ${PWD%/*}/.svc-code/config.toml',
    'cat $UNSET$HOME/.svc-code/config.toml',
    'shopt -s dotglob\ncat ~/*/config.toml',
    'GLOBIGNORE=x; cat ~/*/config.toml',
    `cat ~/{${Array.from({ length: 70 }, (_, at) => `a${at}`)}}/config.toml`,
    `echo ${'a '.repeat(150)}; cat ~/.svc-cod?/config.toml`
  ])
  await free(['cat *.toml', 'cat ~/*/config.toml', 'cat ../*/config.toml', 'cat $HOME/other/x'])
  await freeInYolo([
    'cat ~/.n*/config.toml',
    'cat ~/.n*/config.toml',
    'cat ~/{proj,other}/x',
    'mkdir -p {a,b}/{c,d}',
    'echo {1..1000}',
    'x=other; cat ~/$x/y',
    'x=$(date); cat ../$x/y',
    'for f in src/*; do cat $f; done'
  ])
})

test('a word is taken from each of the directories that the line may be in', async t => {
  const { asked, free, freeInYolo } = await scene(t)
  await asked([
    'cd .. && cat $PWD/.svc-code/config.toml',
    'cd .. && cat ${PWD}/.svc-code/config.toml',
    'cd ..; cd sub; cat $OLDPWD/.svc-code/config.toml',
    'cd .. && cat .svc-c*/config.toml',
    'cd nowhere; cd .. && cat .svc-code/config.toml',
    'cd lines; cd .. && cat .svc-code/config.toml',
    'command cd .. && cat .svc-code/config.toml',
    '(cd sub); cd .. && cat .svc-code/config.toml',
    'cd nowhere && ls; cd ..; cat .svc-code/config.toml',
    'x=..; cd $x && cat .svc-code/config.toml',
    'cd ~/.s* && cat config.toml',
    'tar -C .. -cf - .svc-code/config.toml',
    'tar cCf .. - .svc-code/config.toml',
    'git -C .. diff --no-index /dev/null .svc-code/config.toml',
    'cat /dev/fd/../cwd/../.svc-code/config.toml',
    'cat /proc/self/fd/../task/1/cwd/../.svc-code/config.toml'
  ])
  await free(['cd sub && cat ../lines', 'cd sub && cd .. && cat x', 'cd sub && cat $PWD/x'])
  await freeInYolo(['make -C sub x', 'git -C .. log x'])
})

test('what the texts of a word have in common is looked at once for each directory', async t => {
  const { home, cwd } = await scene(t)
  const looks = t.mock.method(OwnFiles.prototype, 'named')
  const names = Array.from({ length: 300 }, (_, at) => `n${at}`)
  const goes = names.slice(0, 5).map(name => `cd ${name}; `)
  const line = `${goes.join('')}echo {${names.slice(0, 60).join()}}:${names.join(':')}`
  await readLine(line, { shell: '/bin/bash', cwd, around: { home, cwd, agent_dir: join(home, 'agent') } })
  assert.ok(looks.mock.callCount() > 300)
  assert.ok(looks.mock.callCount() < 10_000, `${looks.mock.callCount()} looks`)
})

test('what recurses from above the home reads it', async t => {
  const { asked, free, freeInYolo } = await scene(t)
  await asked([
    'grep -r api_key ~',
    'grep -r api_key ..',
    'grep -R api_key ../',
    'grep --recursive api_key /',
    'cd ~ && grep -rn api_key .',
    'cd ~ && grep -rn api_key',
    'cd .. && grep -r -A 3 api_key',
    'cd nowhere; cd ..; grep -r api_key',
    'cd ~ && rg api_key',
    'rg api_key ..',
    'grep -r api_key ../{.,x}',
    'grep -r api_key $HOME',
    'x=~; grep -r api_key $x',
    'timeout 5 grep -r api_key ~',
    'tar cf - ~ | grep -a api_key',
    'tar -czf x.tgz ..',
    'tar cf - -C ~ .',
    'cp -r .. z',
    'cp -a ~ z',
    'cp -rt z ..',
    'rsync -a ~/ z',
    'zip -r z.zip ..',
    'diff -r .. x',
    'find .. -name config.toml -exec cat {} +',
    'find ~ -name config.toml | xargs cat',
    'cat $(find .. -name config.toml)',
    'echo ~ | xargs grep -r api_key',
    'f() { grep -r api_key "$1"; }; f ~',
    'rm -rf ~',
    'for x in a b; do grep -r api_key .; cd ..; done',
    'ln -s .. up && cat up/.svc-code/config.toml',
    'cd .. && git grep --no-index api_key',
    'docker run -v ~:/x alpine cat /x/y'
  ])
  await free([
    'grep -r api_key .',
    'grep -rn api_key src',
    'grep -r api_key ../other',
    'grep api_key ../x',
    'rg api_key',
    'cd sub && grep -r api_key ..',
    'cd .. && grep -r api_key proj/src',
    'cd ~/other && grep -r api_key .',
    'cd sub && ls && cd .. && grep -r api_key .',
    'mkdir -p build && cd build && cmake .. && cd .. && grep -r api_key .',
    'cd .. && ls && cd proj && grep -r api_key .',
    'find .. -name x',
    'ls -R ..',
    'du -sh ..',
    'tar cf x.tar src',
    'cp -r src ../other/copy',
    'cp -r src ..',
    'cp ../other/x .',
    'rm -rf build ../other/build',
    'git grep x',
    'mv lines sub'
  ])
  await freeInYolo([
    '(cd ..; ls); grep -r api_key .',
    'find . -name x -exec grep y {} +',
    'find . -name x | xargs cat',
    'tar xf x.tar -C ..',
    'x=$(mktemp -d); cp -r src $x; rm -rf "$x"',
    'npm --prefix .. test'
  ])
})

test('so does what a shell or a program reads on the line', async t => {
  const { asked, freeInYolo } = await scene(t)
  await asked([
    "bash -c 'cat ~/.svc-code/config.toml'",
    "bash -c 'cat $HOME/.svc-c*/config.toml'",
    "sh -c 'cd .. && cat .svc-code/config.toml'",
    "bash -c 'grep -r api_key ~'",
    "(cd ..; bash -c 'grep -r api_key .')",
    `bash -c "bash -c 'tar cf - ..'"`,
    "eval 'cat ../.svc-cod?/config.toml'",
    "bash <<< 'cat ~/.s*/config.toml'",
    'bash <<E\ngrep -r api_key ~\nE',
    "timeout 5 bash -c 'cat ../.svc-code/config.toml'",
    `python3 -c "print(open('../.svc-code/config.toml').read())"`,
    `python3 -c "import os; print(open(os.environ['HOME'] + '/.svc-code/config.toml').read())"`,
    `node -p 'require("fs").readFileSync(process.env.HOME + "/.svc-code/config.toml", "utf8")'`,
    `node -e 'fs.readFileSync("/x"); fs.readFileSync(\`$HOME/.svc-code/config.toml\`)'`,
    "find . -exec sh -c 'cat ~/.svc-code/config.toml' ';'"
  ])
  await freeInYolo(["bash -c 'cat ~/x'", "bash -c 'cd sub && grep -r x .'", `git commit -m "words, of 'all' kinds: (a) b/c ../d"`])
})

test('where the working directory lies above the home, recursion from there is asked for, and other work is not', async t => {
  const { asked, free } = await scene(t, '.svc-code', '.')
  await asked(['grep -r api_key .', 'grep -r api_key', 'rg api_key', 'cat .svc-c*/config.toml', 'cp -r . /srv/z', 'tar cf - .'])
  await free(['grep -rn api_key proj', 'cat lines', 'ls -la', 'rg api_key proj', 'cat lines | rg x', 'cat *', 'git status'])
})

test('links that a pattern meets, or that are followed below a directory, are followed here, too', async t => {
  const { cwd, home, user, asked, free } = await scene(t, 'home')
  await symlink(home, join(cwd, 'sub/zl'))
  await symlink(join(home, 'config.toml'), join(cwd, 'lf'))
  await symlink(join(user, 'other/src'), join(cwd, 'far'))
  await asked([
    'cat sub/*/config.toml',
    'cat */zl/config.toml',
    'cat s*/z?/config.toml',
    'cat l*',
    'cat *',
    'cat ./l[f]',
    'cat l{f,g}',
    'cat sub/../lf',
    'cat far/../../home/config.toml',
    'cd s* && cat zl/config.toml',
    'for f in *; do cat $f; done',
    'grep -R api_key .',
    'grep -R api_key sub',
    'rg -L api_key .',
    'rg --follow api_key',
    'find -L . -name config.toml -exec cat {} +',
    'cp -rL sub z',
    'tar chf - sub',
    'rsync -aL sub z'
  ])
  await free([
    'cat li*',
    'cat lines',
    'cat sub/deep/*',
    'cat "l*"/x',
    'grep -r api_key sub',
    'grep -R api_key sub/deep',
    'rg api_key',
    'cp -r sub z',
    'find sub -name config.toml'
  ])
})

test('what the home keeps secret is looked for once for a line, however many hard links it names', async t => {
  const { home, cwd } = await scene(t)
  const names = Array.from({ length: 50 }, (_, at) => `link${at}`)
  for (const name of names) await link(join(cwd, 'lines'), join(cwd, name))
  const reads = t.mock.method(fs, 'readdir')
  syncBuiltinESMExports()
  try {
    const around = { home, cwd, agent_dir: join(home, 'agent') }
    const { accesses } = await readLine(`cat link* && cat ${names.join(' ')}`, { shell: '/bin/bash', cwd, around })
    assert.deepEqual(accesses, [])
  } finally {
    reads.mock.restore()
    syncBuiltinESMExports()
  }
  assert.equal(reads.mock.calls.filter(({ arguments: [dir] }) => dir === join(home, 'credentials')).length, 1)
})
