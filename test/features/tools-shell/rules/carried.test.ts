// biome-ignore-all lint/complexity/noUselessStringRaw: one way to write all tables
/** A denied command that another program runs, or that a shell reads from somewhere. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bash, rows, type Table, wrong } from './judge.ts'

/** The line says what is run. */
const told: Table = {
  'rm *': rows(String.raw`
    parallel rm ::: x
    systemd-run --user rm x
    unshare -r rm x
    chroot / rm x
    setsid -w rm x
    ionice -c3 rm x
    chrt -i 0 rm x
    taskset 1 rm x
    stdbuf -oL rm x
    unbuffer rm x
    strace -f rm x
    gdb -batch -ex '!rm x'
    perf stat rm x
    fakeroot rm x
    bwrap --bind / / rm x
    firejail rm x
    runuser -u nobody -- rm x
    su -c 'rm x'
    doas rm x
    pkexec rm x
    start-stop-daemon -S -x /bin/rm -- x
    find . -execdir rm {} +
    fd -x rm
    vim -es '+!rm x' +q
    nvim --cmd '!rm x'
    emacs --batch --eval '(shell-command "rm x")'
    php -r 'system("rm x");'
    tclsh <<< 'exec rm x'
    make -f - <<< 'a:;rm x'
    gawk 'BEGIN { "rm x" | getline }'
    sed -n 's/a/rm x/e' y
    tar -cf a b --checkpoint=1 --checkpoint-action=exec='rm x'
    tar -I 'rm x' -xf a
    zip a.zip b -T -TT 'rm x'
    ssh -o LocalCommand='rm x' -o PermitLocalCommand=yes h
    ssh h 'rm x'
    git -c core.pager='rm x' log
    git -c core.fsmonitor='rm x' status
    git rebase -x 'rm x' HEAD~1
    git filter-branch --tree-filter 'rm x' HEAD
    GIT_SSH_COMMAND='rm x' git fetch
    GIT_EXTERNAL_DIFF='rm x' git diff
    EDITOR='rm x' crontab -e
    bash --init-file <(echo 'rm x') -i
    tee >(rm x) < y
    until rm x; do :; done
    for ((i=$(rm x);;)); do :; done
    unset 'a[$(rm x)]'
    xargs -a l -I{} sh -c 'rm {}'
    xargs -a l env rm
    env -S 'rm x'
    env --split-string='rm x'
    env -C / rm x
    timeout -s KILL 5 rm x
    ./../../bin/rm x
    ~/../bin/rm x
    /usr/bin/../bin/rm x
    npx -c 'rm x'
    npm exec -c 'rm x'
    yarn exec rm x
    pnpm exec rm x
    uv run rm x
    poetry run rm x
    bundle exec rm x
    ls | entr rm x
    script --command='rm x' /dev/null
    readarray -C 'rm x #' -c 1 a <<< b
    trap -- 'rm x' DEBUG
    numactl -N0 rm x
    nsenter -t 1 rm x
    capsh -- -c 'rm x'
    ccache rm x
    proxychains rm x
    direnv exec . rm x
    sponge >(rm x)
    pv a | xargs -n1 rm
    split --filter='rm x' a
    sort --compress-program='rm x' a
    man -P 'rm x' ls`)
}

/** The line may run it: the program is not known, or has its commands from an input. */
const untold: Table = {
  'rm *': rows(String.raw`
    proot rm x
    m4 <<< 'syscmd(rm x)'
    dc -e '!rm x'
    socat - EXEC:'rm x'
    nc -e '/bin/rm x' h 1
    BASH_ENV=<(echo rm x) bash -c :
    bash --rcfile <(echo rm x) -i
    bash --rcfile <(echo rm x) -ic :
    source <(echo rm x)
    echo 'rm x' | sh
    printf 'rm x' | bash -s
    eval "$(echo rm x)"
    cpulimit -l 5 rm x
    sg root 'rm x'
    newgrp <<< 'rm x'
    scl enable a 'rm x'
    dotenv rm x
    psql -c '\! rm x'
    mysql -e 'system rm x'
    ftp <<< '!rm x'`)
}

const denying = (pattern: string) => ({ deny: bash(pattern), allow: [{ tool: 'Bash' }] })

test('a denied command is found behind the program that carries it', async () => {
  assert.deepEqual(await wrong(told, denying, 'deny'), [])
})

test('a line asks when a program nobody knows, or an input, may carry a denied command', async () => {
  assert.deepEqual(await wrong(untold, denying, 'ask'), [])
})
