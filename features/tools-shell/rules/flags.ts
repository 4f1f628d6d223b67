/**
 * Words that make a program run, read or write something else than its name says: no wildcard of a rule stands for them. Better one too many
 * than one missed: short flags may be put together, long ones shortened.
 */
import { building } from './building.ts'
import { flags, leading, own, type Risk } from './risk.ts'
import { list, SHELLS } from './words.ts'

/** The second operand is written. */
const secondOperand: Risk = words => {
  const first = words.findIndex((word, at) => at > 0 && !word.startsWith('-'))
  return (word, index) => index > first && !word.startsWith('-')
}

const gitFlags = flags(
  'O',
  `cc-cmd config config-env config-file exec exec-path export-marks ext-diff extcmd git-dir header-cmd import-marks in-place index-output
    open-files-in-pager output output-directory receive-pack sendmail-cmd separate-git-dir smtp-server template textconv to-cmd tool
    unsafe-paths upload-pack work-tree`,
  'text',
  /(?:^|=)[\w-]+::|^foreach$/
)
const gitCommands = new Set(
  list(
    `bundle checkout-index credential credential-cache credential-store daemon difftool filter-branch instaweb mailinfo merge-index mergetool
      remote-ext remote-fd web--browse`
  )
)
/** Flags before the subcommand that take no word. */
const gitBare = /^-(?![cC]$|-(?:attr-source|config-env|git-dir|namespace|super-prefix|work-tree)$)/
/** Without a value, and with flags that only choose what is shown, settings are read. */
function setsConfig(words: readonly string[], at: number): boolean {
  const rest = words.slice(at + 1)
  const [first, ...others] = rest.filter(word => !word.startsWith('-'))
  const shown = /^-(?:l|z|-(?:all|get(?:-all|-regexp)?|global|includes|list|local|name-only|show-\w+|system|type=\w+|worktree))$/
  const gets = first === 'get' || first === 'list' || rest.some(word => /^--get/.test(word))
  return (!gets && (others.length > 0 || first === 'edit')) || rest.some(word => word.startsWith('-') && !shown.test(word))
}

const git: Risk = words => {
  const risks = gitFlags(words)
  const last = leading(words, gitBare)
  const all = new Set(words)
  const has = (...names: readonly string[]) => names.some(name => all.has(name))
  const merges = has('cherry-pick', 'pull', 'rebase', 'revert')
  return (word, index) =>
    risks(word, index) ||
    (word === 'config' && index <= last && setsConfig(words, index)) ||
    ((/^-[cC]/.test(word) || gitCommands.has(word)) && index <= last) ||
    (word.includes('/') && (index === last || (merges && /^(?:-s|--st)/.test(word.startsWith('-') ? word : words[index - 1]!)))) || // a file
    (word === 'run' && has('bisect')) ||
    (/^-[^-]*[cu]/.test(word) && has('clone', 'shell')) ||
    (/^-[^-]*x/.test(word) && has('rebase', 'difftool')) ||
    (/^-[^-]*o/.test(word) && has('archive', 'bugreport', 'diagnose', 'format-patch', 'mailsplit'))
}

const tarFlags = flags(
  'FI',
  'checkpoint-action info-script new-volume-script rmt-command rsh-command to-command use-compress-program',
  'checkpoint'
)
const tar: Risk = words => (word, index) => tarFlags(words)(word, index) || (index === 1 && /^[a-zA-Z]*[FI]/.test(word))

const sed: Risk = words => (word, index) => /^(?:-[^-]*[if]|--(?:i|f))/.test(word) || !isHarmlessSed(word, index, words)

/** Some work elsewhere, some name programs. */
const npmFlags = flags(
  'C',
  `browser cwd dir editor git globalconfig init-module node-gyp node-options onload-script pack-destination prefix script-shell shell userconfig
    viewer`,
  'global v'
)
/** Names of subcommands may be shortened. */
const npm: Risk = words => {
  const last = leading(words)
  const risks = npmFlags(words)
  return (word, index) => {
    if (risks(word, index)) return true
    if (index > last) return false
    const makes = /^(?:cr(?:e(?:a(?:te?)?)?)?|ini?t?|innit?)$/.test(word) // `npm init x` runs what it gets from the registry
    return makes ? !/^(?:-|$)/.test(words[index + 1] ?? '') : /^(?:c|conf(?:ig?)?|edi?t?|explo(?:re?)?|pkg?|set)$/.test(word)
  }
}

const curlFlags = flags(
  'cDEJKoOT',
  `abstract-unix-socket alt-svc cert config cookie-jar dump-header engine etag-save hsts libcurl netrc-file output output-dir proto-default
    remote-header-name remote-name remote-name-all ssl-sessions stderr trace trace-ascii unix-socket upload-file variable`,
  'proto',
  /%output|^--exp|^file:|^[^\s"'/{[]*[{[][^\s"'/]*:|^(?:-\w+|[^@/]*=)?@|^[^@/]*=<|^-[^\WF]*F.*=[@<]/i // {file,x}:/y
)
const curl: Risk = words => (word, index) => {
  const before = words[index - 1] ?? ''
  if (/^(?:-\w*F|--form?)$/.test(before) && /=\s*[@<]/.test(word)) return true
  return curlFlags(words)(word, index) || (/^--(?:data-u|url-q)/.test(before) && /^[^=]*@/.test(word))
}

/** A file that lies elsewhere is sent: `gh pr create --body-file /etc/passwd`; words behind `--` are flags of git. */
const gh: Risk = words => {
  const last = leading(words)
  const dashes = words.indexOf('--')
  const sends = words.some((word, at) => at <= last && /^(?:gist|gpg-key|release|secret|ssh-key|variable)$/.test(word))
  return (word, index) => {
    if (index <= last && /^(?:alias|codespace|config|cs|ext|extensions?)$/.test(word)) return true
    if (dashes > 0 && index > dashes) return true
    const glued = /^(?:-[DFOTf](?=.)|--(?:body-file|dir|env-file|field|input|notes-file|output|template)=)(.*)/s.exec(word)?.[1]
    const valued = /^(?:-[DFOTf]|--(?:body-file|dir|env-file|field|input|notes-file|output|template))$/.test(words[index - 1] ?? '')
    const file = glued ?? (valued || sends ? word : '')
    return /^(?:[/~]|\.\.(?:\/|$))|\/\.\.(?:\/|$)|^\$\{?(?:HOME|OLDPWD|PWD)\b/.test(file.replace(/^[^=@]*=?@/, ''))
  }
}

/** `docker create` and `docker start` together are `docker run`; a directory of settings holds programs. */
const dockerFlags = flags('', 'config')
const docker: Risk = words => {
  const last = leading(words)
  return (word, index) => dockerFlags(words)(word, index) || (word === 'create' && (index <= last || words[index - 1] === 'container'))
}

const cargoFlags = flags('C', 'config manifest-path')
const cargo: Risk = words => (word, index) =>
  cargoFlags(words)(word, index) || (words.includes('watch') && /^(?:-[^-]*s|--sh|--$)/.test(word))

const python = own('c', '', /^-[bBdEhiIOPqsSuvVx]+$|^-[WX]./, /^-$/)
/** Modules that run a program given on the line, also where another one runs them (`-m cProfile -m timeit`). */
const runningModules = /^(?:IPython|asyncio|code|debugpy|idlelib|pdb|ptpython|bpython|smtpd|timeit|xonsh)(?:$|\.)/
const pythonOrModule: Risk = words => {
  const at = words.findIndex((each, place) => place > 0 && !/^-(?:[bBdEhiIOPqsSuvVx]+|[WX].+)$/.test(each))
  const flag = /^-[bBdEhiIOPqsSuvVx]*m(.*)/.exec(words[at] ?? '')
  const risks = python(words)
  const file = /(?:^|\/)([^/]+\.py)$/.exec(words[at] ?? '')?.[1]
  if (!flag && !(file && runningModules.test(file))) return risks
  const runs = !flag || [flag[1]!, ...words.slice(at + 1)].some(word => runningModules.test(word))
  return (word, index) => (index <= at ? risks(word, index) : runs) // what follows belongs to the module
}

/** By names of programs; a pattern stands for any word that fits it. */
const risks: readonly (readonly [string, Risk | RegExp])[] = [
  ...building,
  [
    'awk gawk mawk nawk',
    () => word => /system|getline|@|^(?:-[dfiopDElW]|--[a-z])/.test(word) || /[>|]/.test(word.split('print').slice(1).join(' '))
  ],
  ['fish', own('cCop', 'command init-command profile', /^-[iln]+$/)],
  [
    SHELLS.replace('fish ', ''),
    own(
      'cs',
      'command init-command init-file rcfile',
      /^[-+][abefhiklmnprtuvxBCEHPT]+$|^--(?:login|no(?:editing|profile|rc)|posix|verbose)$/
    )
  ],
  [
    'bun node nodejs',
    own(
      'epr',
      'env-file eval experimental-loader import loader preload print require',
      /^--(?:enable-source-maps|expose-gc|inspect(?:-brk)?|no-warnings|test|watch)$/,
      /^-$|^(?:inspect|debug)$|^--inspect[\w-]*=|(?:^|=)data:/ // a debugger that others reach runs what they say
    )
  ],
  ['apt apt-get aptitude', flags('co', 'config-file option')],
  ['cargo', cargo],
  ['cmake', flags('CEP')],
  ['curl', curl],
  ['emacs', /^(?:-[fl]|--?(?:batch|eval|execute|funcall|insert|load|script))/],
  ['deno', flags('', '', '', /^eval$|^data:/)],
  ['docker podman', docker],
  ['env', flags('S', 'split-string')],
  ['fd fdfind', flags('xX', 'exec exec-batch')],
  ['find', /^-(?:exec|execdir|ok|okdir|delete|fprint|fprint0|fprintf|fls|files0-from)$/],
  ['gdb', /^--?(?:e|x|command|iex|ix|init)/],
  ['gh glab', gh],
  ['git', git],
  [
    'go',
    words => word =>
      /^--?(?:exec|toolexec|vettool|overlay|modfile|o|C)(?:=|$)|-extld\b/.test(word) ||
      (word === '-w' && words[1] === 'env') ||
      (words[1] === 'run' && /^[\w./-]+@/.test(word))
  ],
  ['gpg gpg2', flags('o', 'homedir options output')],
  ['iconv', flags('o', 'output')],
  ['ip', /^(?:exec|-b(?:atch)?)$/],
  ['jobs', flags('x')],
  ['just', flags('cdf', 'command dotenv-path justfile shell shell-arg working-directory')],
  ['less more', flags('kOoT', 'cmd lesskey-content lesskey-file lesskey-src log-file LOG-FILE tag-file', '', /^\+/)],
  ['lua luajit', own('eil', '', /^-v$/)],
  ['make gmake', flags('CEfI', 'directory eval file include-dir makefile', '', /^[\w.]+(?:!=|[:+?]*=(?![\w.,-]*$))|^\.?(?:SHELL|MAKEF)/)],
  ['man', flags('CHlP', 'config-file html local-file pager', '', /\//)],
  ['mariadb mysql', /^(?:\s*system\b|--(?:init-command|pager|plugin-dir|tee)|-A?e?\\!)|\\!|\b(?:dump|out)file\b/i],
  ['npm pnpm yarn', npm],
  ['npx pnpx bunx', flags('c', 'call')],
  ['openssl', /^-(?:config|engine|keyout|out|provider(?:-path)?|writerand)$/],
  ['osascript', own('el', '', /^-i$/)],
  ['perl', own('eEiImM', '', /^-[tTuUwWX]+$/)],
  ['php', own('BdERrz', '', /^-[nqs]$/)],
  ['psql', /\\|^-[^-]*[foLv]|^--(?:file|log-file|output|variable)|\bprogram\b/i],
  ['python pypy', pythonOrModule],
  ['rg', flags('', 'hostname-bin pre')],
  [
    'rsync',
    flags(
      'eM',
      'backup-dir daemon log-file only-write-batch partial-dir remote-option rsh rsync-path temp-dir write-batch',
      'backup partial',
      /^-o\w+=/ // a host that ssh takes for a flag
    )
  ],
  ['ruby', own('eiIr', '', /^-[UWvw]+$/)],
  ['sed gsed', sed],
  ['shuf', flags('o', 'output')],
  ['sort', flags('oT', 'compress-program files0-from output temporary-directory')],
  ['split', flags('', 'filter')],
  [
    'sqlite',
    /^-(?:cmd|init)|\.(?!(?:databases|headers?|indexes|mode|schema|tables)\b)[a-z]+\s|\b(?:edit|load_extension|readfile|writefile)\s*\(/i
  ],
  ['scp sftp', flags('bDFIoS')],
  ['ssh', flags('EFIoSw')],
  ['tar', tar],
  ['tcpdump', flags('Vwz')],
  ['tree', flags('o')],
  ['uniq xxd', secondOperand],
  ['vim nvim vi view ex', /^(?:\+|-[a-zA-Z\d]*[cSsuUwWieElV]|--(?:cmd|log|remote|startuptime))/],
  [
    'wget',
    flags(
      'aeioOP',
      `append-output body-file config directory-prefix execute hsts-file input-file output-document output-file post-file rejected-log
        save-cookies use-askpass warc-file`
    )
  ],
  ['yq', flags('is', 'inplace split-exp')],
  ['zip', flags('T', 'unzip-command')]
]
const byName = new Map(
  risks.flatMap(([names, given]) => {
    const risk: Risk = given instanceof RegExp ? () => word => given.test(word) : given
    return list(names).map(name => [name, risk] as const)
  })
)

/** What is known of a program; a version in its name does not count. Undefined: nothing. */
export function riskOf(name: string): Risk | undefined {
  return byName.get(name) ?? byName.get(name.replace(/-?(?<![\d.])[\d.]+$/, ''))
}

/** Printing, deleting and replacing; `w` writes files, `e` runs commands, and what is not understood may do either. */
const sedText = (mark: string) => `(?:[^${mark}\\\\\\n]|\\\\.)*${mark}`
const sedReplacements = ['/', '|', '#', ','].map(mark => `s\\${mark}${sedText(`\\${mark}`).repeat(2)}[gpiI\\d]*`)
const sedCommand = `(?:[\\s\\d,$!~+]|/${sedText('/')}I?)*(?:[pdqDPgGhHnNx=]|${sedReplacements.join('|')})[ \\t]*(?:[;\\n]|$)`
const harmlessSed = new RegExp(`^(?:${sedCommand})+$`)

function isHarmlessSed(word: string, index: number, words: readonly string[]): boolean {
  if (word.startsWith('-')) return !/^(?:-[^-]*e.|--e)/.test(word)
  const marked = words[index - 1] === '-e' || /^-[^-]*e$/.test(words[index - 1] ?? '')
  const first = words.findIndex((other, at) => at > 0 && !other.startsWith('-')) === index
  const script = marked || (first && !words.some(other => /^-[^-]*e/.test(other)))
  return !script || harmlessSed.test(word)
}
