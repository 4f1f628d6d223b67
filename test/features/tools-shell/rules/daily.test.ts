// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shell text
// biome-ignore-all lint/complexity/noUselessStringRaw: one way to write all tables
/** What every user does. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bash, judge, rows, wrong } from './judge.ts'

/** Lines of every day. */
const ordinary = rows(String.raw`
  git --no-pager log src/a.ts
  git clone -b dev https://localhost/x y
  git commit -s -m x src/a.ts
  git rebase -s recursive HEAD~1
  npm init -y
  npm i --global x
  npm -w packages/a run build
  gh pr create --title x --body "$BODY" && gh api /user
  curl -X POST -d '{"a":"http://localhost/x"}' http://localhost/y
  curl 'http://localhost/x?a=b@c'
  docker compose config && docker volume create data
  cargo watch -x test
  go run ./cmd/x
  python3 -m cProfile -o x y.py
  python3 x.py -i y
  node --inspect x.js
  git config --get user.email
  git config --global --list
  gh pr create --title x --body-file notes/body.md
  npm run e2e && gh pr checks | head
  git log -n 5 -- config
  git submodule update --init --recursive
  git diff --text --name-only
  npm i -D typescript && npm run test:unit -- --config x
  curl --proto '=https' --tlsv1.2 -sSf https://localhost/x
  sed -n '/a/,/b/p' x && sed '/^$/d' y
  awk '$1 > 5' a | awk '/a|b/' -
  (cd a && npm test) && ! npm run x || true
  time npm test 2>/dev/null &
  tar --exclude=x -czf a.tgz .
  cat ../../a && cd ../..
  node --version && python3 -V
  node --test
  git log &>/dev/null
  git status && git diff | head
  npm test -- --grep x
  cd sub && ls
  NODE_ENV=test npm test
  git add -A && git commit -m "feat: add x (#12)"
  git commit -m "fix: don't; rm x"
  git switch -c feature/x
  git checkout -b feature/x
  git log --oneline -20
  git log -p -S'foo' -- src
  git diff --stat HEAD~3..HEAD
  git push -u origin HEAD
  git rebase -i HEAD~3
  git stash push -m "wip"
  git branch -D old
  git branch -c a b
  git clean -fdx
  git grep -n "foo" -- '*.ts'
  git show HEAD:src/a.ts | head -50
  git commit --amend --no-edit
  git diff -C HEAD
  git tag -a v1 -m "v1"
  git blame -L 10,20 src/a.ts
  git log --format='%h %s' --since="2 weeks ago"
  npm run build 2>&1 | tail -20
  npm install --save-dev typescript
  npm ci && npm run lint
  npx tsc --noEmit -p .
  npx jest --coverage src/a.test.ts
  ls -la src/*.ts
  cat src/a.ts | grep -n foo | sort | uniq -c | sort -rn | head
  grep -rn "rm -rf" src --include='*.ts'
  grep -rn 'foo$' . | wc -l
  rg -n "later|never" -g '*.ts'
  find . -name '*.ts' -not -path './node_modules/*' -type f
  find src -type f -newer package.json
  find . -name '*.test.ts' | xargs grep -l foo
  node scripts/build.js --watch -e dev
  node --test test/
  python3 -m pytest -x tests/test_a.py
  pytest -x -q --junitxml=reports/a.xml -c pyproject.toml tests
  python3 -u -m pytest -c pyproject.toml tests
  node --watch app.js -e dev
  python3 manage.py migrate
  make -j4 test
  make V=1 CC=clang all
  go test ./... -run TestX -v
  go test cmd/...
  go build ./...
  cargo test -- --nocapture
  cargo run --release
  docker ps -a
  docker compose up -d
  docker rm -f c1
  echo "a b" $HOME
  echo done >/dev/null 2>&1
  sed -n '10,40p' src/a.ts
  sed -e 's/foo/bar/g' -e '/x/d' a.txt
  awk '{ print $1, $NF }' a.txt
  awk -F: '{ s += $3 } END { print s }' a.txt
  awk -F, -v n=3 'NR > n { print $2 }' a.csv
  jq -r '.scripts | keys[]' package.json
  test -f package.json && cat package.json
  [ -d dist ] || mkdir -p dist
  [[ -f x ]] && echo yes
  if [ -f a ]; then cat a; else echo none; fi
  (cd sub && npm test)
  tar czf out.tgz dist
  tar xzf out.tgz -C dist
  curl -sS http://localhost:3000/health
  curl -s -X POST -H 'content-type: application/json' -d '{"a":1}' http://localhost/x
  curl -d email=a@b.c http://localhost
  diff -u a b
  which node npm
  command -v curl >/dev/null
  date +%s
  printf '%s\n' a b
  timeout 60 npm test
  uv run pytest -q
  poetry run pytest
  kubectl get pods -n a
  gh pr create --title "x" --body "first rm x; then y"
  cut -d: -f1 a | tr a-z A-Z
  npm test | tee out.log
  sleep 1 && curl http://localhost
  pnpm -r build
  yarn test --watch=false
  yarn add -D x
  eslint src -f json -c eslint.config.js -o reports/eslint.json --fix-dry-run
  eslint src --fix
  prettier --check src
  prettier --config .prettierrc src/a.ts
  biome check src
  gcc -Wall -O2 -o app main.c && gcc-12 -c a.c -o build/a.o -MMD -MF build/a.d
  g++ -o ./app a.cc -Wl,-rpath,lib -o /dev/null
  clang -std=c11 -Wl,-Map=out.map -o app a.c
  rustc -O -C opt-level=3 -o app main.rs --emit=asm
  tsc --outDir dist -p . && tsc -b packages/a && tsc --noEmit
  black --check . && black --diff a.py
  ruff check . && ruff format --check
  gofmt -l . && rustfmt --check src/main.rs
  nm -C app
  patch -p1 --dry-run < x.patch
  ps aux | grep node
  du -sh node_modules | sort -h
  mv a.ts b.ts && git add -A
  cat a.txt # comment
  git log --author="A B" | cat -A
  ls | wc -l; pwd
  cat ../README.md
  cat "$HOME/.config/x"
  grep -c . a.txt b.txt
  bash scripts/build.sh
  ./scripts/build.sh --fast
  sort -t, -k2 a.csv
  sort -t : -k 3n /etc/group
  uniq -c a
  tail -n +10 a | head -5
  head -c 100 a
  git fetch --all --prune
  git merge --no-ff feature
  git cherry-pick -x abc123
  git worktree list
  git log -- src/a.ts
  git rm --cached a
  git diff --output-indicator-new=+
  git show --no-patch --format=%H
  git ls-files | grep test
  npm outdated || true
  npm version patch
  npm pack --dry-run`)

/** Rules of a user for them. */
const usual = [
  'git *',
  'npm *',
  'cd *',
  'ls*',
  'ls *',
  'cat *',
  'head *',
  'tail *',
  'grep *',
  'rg *',
  'find *',
  'node *',
  'pytest *',
  'python3 *',
  'make *',
  'go *',
  'cargo *',
  'docker *',
  'tsc*',
  'npx tsc*',
  'npx jest*',
  'echo *',
  'wc *',
  'sort *',
  'uniq *',
  'sed *',
  'awk *',
  'jq *',
  'test *',
  '[ *',
  'true',
  'pwd',
  'mkdir *',
  'cp *',
  'mv *',
  'tar *',
  'curl *',
  'diff *',
  'which *',
  'date *',
  'printf *',
  'xargs grep *',
  'NODE_ENV=* npm *',
  'timeout * npm *',
  'uv run *',
  'poetry run *',
  'kubectl get *',
  'gh *',
  'cut *',
  'tr *',
  'tee *',
  'env',
  'sleep *',
  'pnpm *',
  'yarn *',
  'eslint*',
  'eslint src --fix',
  'prettier *',
  'biome *',
  'gcc *',
  'gcc-12 *',
  'g++ *',
  'clang *',
  'rustc *',
  'black *',
  'ruff *',
  'gofmt *',
  'rustfmt *',
  'nm *',
  'patch *',
  'ps *',
  'du *',
  'stat *',
  'file *',
  'command -v *',
  'export CI=*',
  '[[ *',
  'bash scripts/*',
  './scripts/*'
]

/** Lines of every day that no rule allows. */
const further = rows(String.raw`
  awk '/a|b/ { print $1 }' x && awk '$1 ~ /c|d/ || $2 > 3' y
  awk -F'|' '{ print $2 }' x
  awk '{ print $1 | "sort -u" }' x
  awk 'BEGIN { "date" | getline d; print d }'
  sed 'y/abc/def/' x && sed '/^ *e /d; s/e/x/g' y
  sed -n '/begin/,/end/{/end/!p}' x
  sed -i -e 's/one/two/' -e '$a the end' x
  perl -pe 's/a/b/' x
  node -e 'for (const x of ["a b", "c"]) console.log(x)'
  python3 -c 'import json; print(json.load(open("a b.json"))["x y"])'
  cp /tmp/x/*.log logs && mv /srv/data/*.json .
  echo $((i + 1)) && a[0]=1
  gdb -batch -ex bt ./x core
  sqlite3 a.db '.schema x'
  cat /proc/cpuinfo && nice cat /proc/meminfo
  docker exec -it web ls -la
  docker run --rm -u $(id -u):$(id -g) -v "$PWD":/x img ls
  git config user.name "$NAME"
  ssh -T git@github.com
  ssh h 'df -h' < y
  GIT_SSH_COMMAND="ssh -i $KEY" git fetch
  npm config set registry "$URL"
  T=5; timeout $T npm test
  for h in a b; do ssh $h uptime; done
  while read -r f; do wc -l "$f"; done < <(git ls-files)
  find "$(git rev-parse --show-toplevel)" -name x
  docker compose exec -T db psql -U a < dump.sql
  ls | xargs -P $(nproc) -n1 echo
  eval "$(ssh-agent -s)" && ssh-add k
  eval "$(fnm env --use-on-cd)" && npm test
  bash -c '((i++)); echo $i'
  awk -f x.awk "$file"
  bash --version
  for f in *.ts; do echo $f; done
  while read -r l; do echo "$l"; done < a.txt
  x=$(git rev-parse HEAD); echo $x
  export PATH=$PATH:./bin; tsc
  python3 -c "print(1)"
  node -e "console.log(require('./package.json').version)"
  ./node_modules/.bin/jest a
  make -j$(nproc)
  kill $(lsof -ti :3000)
  wc -l $(git ls-files '*.ts')
  find . -name '*.ts' -exec grep -l foo {} +
  find . -name '*.ts' | xargs wc -l
  echo a | xargs -n1 echo
  docker run --rm -it -v "$PWD":/x alpine ls
  docker rm -f c
  npm rm lodash
  git rm a
  pip install requests
  brew install curl
  man rm
  which rm curl
  command -v curl
  type rm
  awk "NR==$n" a
  awk -v x="$y" '{print x}' a
  sed -i "s/a/$b/" c
  sed "s|x|$y|" z
  cat a | python3 scripts/x.py
  cat a.json | python3 -m json.tool
  cat x | jq .
  python3 manage.py migrate
  npm run build -- --watch
  npx prettier --write .
  env FOO=1 npm test
  NODE_OPTIONS=--max-old-space-size=4096 npm test
  time npm test
  nohup npm start > log 2>&1 &
  (npm start &) ; sleep 2
  cd sub && (npm ci; npm test) 2>&1 | tail -5
  f() { echo a; }; f
  [[ $x == y ]] && echo z
  case $x in a) echo b;; esac
  echo 'rm -rf x' >> notes.md
  grep -rn 'rm -rf' .
  git log --grep='rm x'
  git -c user.name=a commit -m "rm the file"
  git -C sub log
  printf 'rm x\n' > a
  cp a b && mv b c
  ssh host uptime
  rsync -av a/ b/
  tar -xzf a.tgz
  make rm-target
  psql -c 'drop table x'
  gh issue create --body 'please rm x'
  terraform plan
  kubectl delete pod rm
  aws s3 rm s3://x
  yarn remove x
  jest -t 'rm x'
  echo "$PATH" | tr : '\n'
  test -n "$CI" || npm run x
  set -e; npm ci
  set -euo pipefail && npm test
  source venv/bin/activate && pytest
  . ./env.sh; make
  trap 'echo bye' EXIT
  tmux ls
  jobs; wait
  ls -t | head -1
  tail -f log & sleep 5; kill %1
  http GET localhost
  mkdir -p a/b && touch a/b/c
  touch x && chmod +x x && ./x
  java -jar a.jar
  dotnet test
  mvn -q test
  ./gradlew test
  php artisan migrate
  bundle exec rspec
  rails db:migrate
  sqlite3 a.db 'select * from t'
  openssl rand -hex 8
  xxd a | head`)

test('a text may be given in a here document', async () => {
  const line = (text: string) => `git commit -m "$(cat <<'EOF'\nfix: x\n\n${text}\nEOF\n)"`
  for (const text of ['rm is gone', 'a; b $(c) `d`']) {
    assert.equal(await judge({ allow: bash('git *') }, line(text)), 'approve', text)
    assert.equal(await judge({ allow: bash('git *'), deny: bash('npm publish*') }, line(text)), 'approve', text)
  }
})

test('what a user allowed by sensible rules is not asked for', async () => {
  assert.deepEqual(await wrong({ usual: ordinary }, () => ({ allow: bash(...usual) }), 'approve'), [])
})

test('denying rules leave ordinary lines alone', async () => {
  const found: string[] = []
  for (const pattern of ['rm *', 'rm -rf *', 'sudo *', 'git push --force*', 'npm publish*', 'shutdown*', '*--force*'])
    for (const line of [...ordinary, ...further]) {
      const said = await judge({ deny: bash(pattern) }, line, 'yolo')
      if (said !== 'approve') found.push(`${pattern}: ${said} ${line}`)
    }
  assert.deepEqual(found, [])
})
