/** Which commands touch all that lies below the directories they are given. */
import type { Call } from './call.ts'

/** What a command reaches below its words. */
export interface Recursion {
  /** Behind links, too. */
  readonly links: boolean
  /** It works in the directory where it runs: no word names another. */
  readonly here: boolean
  /** Index of the word that it writes to. */
  readonly target?: number
}

/** What may be asked of the words of a command. */
interface Words {
  readonly values: readonly string[]
  /** Its input comes from elsewhere. */
  readonly fed: boolean
  /** What it prints may be the words of another command. */
  readonly taken: boolean
  readonly operands: readonly number[]
  has(flag: RegExp): boolean
}

type Look = (words: Words) => Recursion | undefined

/** Letters of flags that take the next word, then long ones. */
const valuedGrep = /^(?:-\w*[ABCDdefm]|--(?:after-context|before-context|context|exclude[\w-]*|file|include|max-count|regexp))$/
const valuedSearch =
  /^(?:-\w*[ABCEefgGjmMrtTd]|--(?:after-context|before-context|context|file|glob|ignore|iglob|max-[\w-]+|regexp|replace|type|type-not))$/

const given = /^(?:-\w*[ef]|--(?:file|regexp)(?:=|$))/

const grep: Look = ({ operands, has }) =>
  has(/^-\w*[rR]|^--(?:r(?!eg)|deref)|^--directories=rec|^rec/)
    ? { links: has(/^-\w*R|^--deref/), here: operands.length < (has(given) ? 1 : 2) }
    : undefined

const search: Look = ({ operands, fed, has }) => ({
  links: has(/^-\w*L|^--follow/),
  here: !fed && operands.length < (has(given) ? 1 : 2)
})

/** Those that print names: what runs for these reads them. */
const find: Look = ({ values, taken, has }) =>
  taken || has(/^-(?:exec|ok)(?:dir)?$|^-delete$|^-\w*[xX]$|^--exec/)
    ? {
        links: has(/^-\w*L|^--follow|^-follow$/),
        here: !values[1] || !values.some((word, at) => at > 0 && /^[^-(!]/.test(word)) || /^-[^HLPOD]/.test(values[1])
      }
    : undefined

const tar: Look = ({ values, has }) =>
  /^-?[a-zA-Z]*[cru]/.test(values[1] ?? '') || has(/^-[a-zA-Z]*[cru]|^--(?:create|append|update)/)
    ? { links: has(/^-\w*h|^--dereference/) || /^[a-zA-Z]*h/.test(values[1] ?? ''), here: false }
    : undefined

/** The last operand is where the copies go, unless a flag says so. */
const copies =
  (recursive: RegExp, links: RegExp): Look =>
  ({ operands, has }) => {
    if (!has(recursive)) return undefined
    const target = operands.length > 1 && !has(/^-\w*t|^--target/) ? operands.at(-1) : undefined
    return { links: has(links), here: false, ...(target === undefined ? {} : { target }) }
  }

const flagged =
  (recursive: RegExp, links = /^$/): Look =>
  ({ has }) =>
    has(recursive) ? { links: has(links), here: false } : undefined

/** By names of programs, with flags of theirs that take the next word. */
const looks = new Map<string, { readonly look: Look; readonly valued?: RegExp }>()
const put = (names: string, look: Look, valued?: RegExp) => {
  for (const name of names.split(' ')) looks.set(name, { look, ...(valued ? { valued } : {}) })
}
put('grep egrep fgrep zgrep', grep, valuedGrep)
put('rgrep rg ag ack ack-grep ug ugrep sift pt', search, valuedSearch)
put('find fd fdfind', find)
put('tar bsdtar gtar', tar)
put('cp scp', copies(/^-\w*[rRa]|^--(?:rec|arch)/, /^-\w*L|^--dereference/), /^-\w*[tS]$/)
put('rsync', copies(/^-\w*[rad]|^--(?:rec|arch|dirs|files)/, /^-\w*[Lk]|^--copy-(?:links|dirlinks|unsafe)/), /^-\w*[efBMT]$/)
put('ln mv', copies(/^/, /^$/), /^-\w*[tS]$/)
put('rm chmod chown chgrp', flagged(/^-\w*[rR]|^--rec/, /^-\w*L/))
put('diff', flagged(/^-\w*r|^--rec/, /^(?!--no-deref)/))
put('zip', ({ has }) => (has(/^-\w*[rR]|^--rec/) ? { links: !has(/^-\w*y|^--symlinks/), here: false } : undefined))
put('7z 7za 7zr 7zz', ({ values, has }) => (/^[au]$/.test(values[1] ?? '') ? { links: !has(/^-snl/), here: false } : undefined))
put('jar', ({ values }) => (/^-?\w*[cu]|^--(?:create|update)/.test(values[1] ?? '') ? { links: true, here: false } : undefined))
put('git', ({ values, operands, has }) =>
  values.includes('grep') && has(/^--(?:no-index|untracked)/) ? { links: false, here: operands.length < 3 } : undefined
)
put('docker podman', () => ({ links: false, here: false }))

/** What the command reaches; undefined: only what its words name. `taken`: what it prints may be the words of another. */
export function recursionOf({ program, values }: Call, fed: boolean, taken: boolean): Recursion | undefined {
  const { look, valued } = looks.get(program.name) ?? { look: flagged(/^--recursive$/) }
  const rest = values.slice(1)
  const isOperand = (word: string, at: number) => at > 0 && !word.startsWith('-') && !(at > 1 && valued?.test(values[at - 1]!))
  const operands = values.flatMap((word, at) => (isOperand(word, at) ? [at] : []))
  return look({ values, fed, taken, operands, has: flag => rest.some(word => flag.test(word)) })
}

/** Programs and builtins that take what others print for their words, or for names of files. */
const takers = new Set('cpio mapfile parallel pax read readarray rsync tar xargs zip'.split(' '))
/** Parts of a line that do. */
const takingParts = new Set(['CommandExpansion', 'ProcessSubstitution', 'For', 'While', 'Select'])

export function takesNames(type: string, program: string | undefined): boolean {
  return takingParts.has(type) || (program !== undefined && takers.has(program))
}
