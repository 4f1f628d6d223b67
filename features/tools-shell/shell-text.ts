/**
 * A small, careful reading of POSIX shell text: where simple commands begin and end, and which characters make the shell do something
 * else than run one command. What it does not fully understand counts as such, to the end of the text.
 */

export interface ShellText {
  /** Simple commands in order, without surrounding blanks; empty ones are left out. */
  readonly commands: readonly { readonly from: number; readonly to: number }[]
  /** 1 for every character that belongs to an operator, an output redirection, a substitution or something not understood. */
  readonly fixed: Uint8Array
  /** There are substitutions, groups or parts that were not understood: more commands may hide in the text. */
  readonly nested: boolean
}

/** Redirections that write nowhere: to `/dev/null`, between descriptors. */
const harmless = /(?:(?:&>>?|>>?|>\|)[ \t]*\/dev\/null|>&[ \t]*(?:\d+|-))(?=[\s;&|<>()]|$)/y
/** `$name`, `$1`, `$?`, `${name}`: a value, never a command. */
const variable = /\$(?:[A-Za-z_]\w*|[0-9?#$!@*_-]|\{[A-Za-z_]\w*\})/y
/** A command substitution without quotes and nesting. */
const substitution = /\$\([^()'"`\\$#<>]*\)/y
const blank = /\s/

export function readShell(text: string): ShellText {
  const fixed = new Uint8Array(text.length)
  const commands: { from: number; to: number }[] = []
  let begin = 0
  let nested = false
  let at = 0

  const cut = (end: number, next: number) => {
    let from = begin
    let to = end
    while (from < to && blank.test(text[from]!)) from++
    while (to > from && blank.test(text[to - 1]!)) to--
    if (to > from) commands.push({ from, to })
    begin = next
  }
  const length = (pattern: RegExp) => {
    pattern.lastIndex = at
    return pattern.exec(text)?.[0].length ?? 0
  }
  const fix = (count: number) => {
    fixed.fill(1, at, at + count)
    at += count
  }
  const giveUp = () => {
    nested = true
    fix(text.length - at)
  }
  const dollar = (quoted: boolean) => {
    const next = text[at + 1]
    const simple = length(substitution)
    if (simple > 0) {
      nested = true
      fix(simple)
    } else if (next === '(' || next === '[' || (next === "'" && !quoted)) giveUp()
    else if (next === '{') {
      const size = length(variable)
      if (size > 0) at += size
      else giveUp()
    } else at += Math.max(1, length(variable))
  }
  const doubleQuoted = () => {
    at++
    while (at < text.length && text[at] !== '"') {
      if (text[at] === '\\') at += 2
      else if (text[at] === '`') giveUp()
      else if (text[at] === '$') dollar(true)
      else at++
    }
    at++
  }

  while (at < text.length) {
    const char = text[at]!
    if (char === '\\') at += 2
    else if (char === "'") {
      const end = text.indexOf("'", at + 1)
      if (end < 0) giveUp()
      else at = end + 1
    } else if (char === '"') doubleQuoted()
    else if (char === '$') dollar(false)
    else if (char === '`' || (char === '#' && (at === 0 || /[\s;&|()<>]/.test(text[at - 1]!)))) giveUp()
    else if (char === '(' || char === ')') {
      nested = true
      fix(1)
    } else if (char === '<') {
      if (text.startsWith('<<<', at)) at += 3
      else if (text[at + 1] === '<') giveUp()
      else at += text[at + 1] === '&' ? 2 : 1
    } else if (char === '>' || (char === '&' && text[at + 1] === '>')) {
      const size = length(harmless)
      if (size > 0) at += size
      else fix(/[&>|]/.test(text[at + 1] ?? '') ? 2 : 1)
    } else if (/[;&|\n]/.test(char)) {
      cut(at, at + 1)
      fix(1)
    } else at++
  }
  cut(text.length, text.length)
  return { commands, fixed, nested }
}
