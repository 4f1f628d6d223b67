/** A small lexer for TypeScript sources: enough to find imports and calls without being fooled by comments, strings or templates. */

const wordStart = /[\p{L}_$#]/u
const wordPart = /[\p{L}\p{N}_$]/u
/** After these words a slash begins a regular expression, not a division. */
const beforeRegex = new Set(['return', 'typeof', 'case', 'in', 'of', 'delete', 'void', 'throw', 'new', 'else', 'do', 'await', 'yield'])

/**
 * Tokens in order: `{ kind: 'word' | 'string' | 'number' | 'template' | 'regex' | 'mark', text, line, column }`. Comments are left out;
 * tokens inside `${...}` of a template follow as tokens of their own. `text` of a string is its content. Lines count from 1, columns from 0.
 */
export function lex(source) {
  const tokens = []
  /** Depths of braces at which a template goes on. */
  const templates = []
  let depth = 0
  let at = 0
  let line = 1
  let lineStart = 0

  const push = (kind, text, from) => tokens.push({ kind, text, line: from.line, column: from.column })
  const here = () => ({ line, column: at - lineStart })
  const newline = () => {
    line++
    lineStart = at + 1
  }

  /** Reads template text up to `${` or the closing backtick. */
  const template = from => {
    const begin = at
    while (at < source.length) {
      if (source[at] === '\\') at++
      else if (source[at] === '`') {
        push('template', source.slice(begin, at++), from)
        return
      } else if (source[at] === '$' && source[at + 1] === '{') {
        push('template', source.slice(begin, at), from)
        templates.push(depth++)
        at += 2
        return
      }
      if (source[at] === '\n') newline()
      at++
    }
  }

  const regexPossible = () => {
    const last = tokens.at(-1)
    if (!last) return true
    if (last.kind === 'word') return beforeRegex.has(last.text)
    return last.kind === 'mark' && !')]}'.includes(last.text)
  }

  while (at < source.length) {
    const char = source[at]
    const from = here()
    if (char === '\n') {
      newline()
      at++
    } else if (/\s/.test(char)) at++
    else if (char === '#' && source[at + 1] === '!' && at === 0) at = endOfLine(source, at)
    else if (char === '/' && source[at + 1] === '/') at = endOfLine(source, at)
    else if (char === '/' && source[at + 1] === '*') {
      const end = source.indexOf('*/', at + 2)
      const stop = end < 0 ? source.length : end + 2
      for (; at < stop; at++) if (source[at] === '\n') newline()
    } else if (char === '"' || char === "'") {
      const begin = ++at
      while (at < source.length && source[at] !== char && source[at] !== '\n') at += source[at] === '\\' ? 2 : 1
      push('string', source.slice(begin, at++), from)
    } else if (char === '`') {
      at++
      template(from)
    } else if (char === '}' && templates.at(-1) === depth - 1) {
      depth = templates.pop()
      at++
      template(from)
    } else if (wordStart.test(char)) {
      const begin = at++
      while (at < source.length && wordPart.test(source[at])) at++
      push('word', source.slice(begin, at), from)
    } else if (/\d/.test(char)) {
      const begin = at++
      while (at < source.length && /[\w.]/.test(source[at])) at++
      push('number', source.slice(begin, at), from)
    } else if (char === '/' && regexPossible()) {
      const begin = at
      at = endOfRegex(source, at)
      push('regex', source.slice(begin, at), from)
    } else {
      if (char === '{') depth++
      else if (char === '}') depth--
      push('mark', char, from)
      at++
    }
  }
  return tokens
}

function endOfLine(source, from) {
  const end = source.indexOf('\n', from)
  return end < 0 ? source.length : end
}

function endOfRegex(source, from) {
  let inClass = false
  let at = from + 1
  for (; at < source.length && source[at] !== '\n'; at++) {
    if (source[at] === '\\') at++
    else if (source[at] === '[') inClass = true
    else if (source[at] === ']') inClass = false
    else if (source[at] === '/' && !inClass) break
  }
  at++
  while (at < source.length && /[a-z]/.test(source[at])) at++
  return at
}

/**
 * Every import of a file: `{ specifier, line, type, kind }`. `type` is true when nothing is left of it at run time; `kind` is `static`,
 * `bare` (for its side effects only) or `dynamic`. `specifier` is undefined for a dynamic import of a computed name.
 */
export function importsOf(tokens) {
  const found = []
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at]
    if (token.kind !== 'word' || tokens[at - 1]?.text === '.') continue
    const next = tokens[at + 1]
    if (token.text === 'import' && next?.kind === 'mark' && next.text === '(') {
      const name = tokens[at + 2]
      const literal = name?.kind === 'string' || (name?.kind === 'template' && tokens[at + 3]?.text === ')')
      const before = tokens[at - 1]
      const type = before !== undefined && (['typeof', 'readonly'].includes(before.text) || ':|&<'.includes(before.text))
      const specifier = literal ? name.text : tokens[at + 3]?.text === ')' ? constant(tokens, name) : undefined
      found.push({ specifier, line: token.line, type, kind: 'dynamic' })
    } else if (token.text === 'import' && next?.kind === 'string') {
      found.push({ specifier: next.text, line: token.line, type: false, kind: 'bare' })
    } else if ((token.text === 'import' || token.text === 'export') && next && isClause(token, next, tokens[at + 2])) {
      const from = clauseEnd(tokens, at + 1)
      if (from === undefined) continue
      found.push({
        specifier: tokens[from + 1].text,
        line: token.line,
        type: next.text === 'type' && tokens[at + 2]?.text !== 'from',
        kind: 'static'
      })
      at = from + 1
    }
  }
  return found
}

/** Value of `const name = '...'` in the same file: how optional packages are imported, because the compiler must not look for them. */
function constant(tokens, name) {
  const at = tokens.findIndex(
    (token, index) => token.text === 'const' && tokens[index + 1]?.text === name?.text && tokens[index + 2]?.text === '='
  )
  return tokens[at + 3]?.kind === 'string' ? tokens[at + 3].text : undefined
}

function isClause(token, next, third) {
  if (token.text === 'import') return next.kind === 'word' || next.text === '{' || next.text === '*'
  if (next.text === 'type') return third?.text === '{' || third?.text === '*'
  return next.text === '{' || next.text === '*'
}

/** Index of the `from` that belongs to the clause, or undefined for `export { x }` without one. */
function clauseEnd(tokens, start) {
  let depth = 0
  for (let at = start; at < tokens.length; at++) {
    const { kind, text } = tokens[at]
    if (kind === 'mark' && text === '{') depth++
    else if (kind === 'mark' && text === '}') {
      depth--
      if (depth === 0 && tokens[at + 1]?.text !== 'from' && tokens[at + 1]?.text !== ',') return undefined
    } else if (depth === 0 && kind === 'word' && text === 'from' && tokens[at + 1]?.kind === 'string') return at
    else if (depth === 0 && kind === 'mark' && text !== ',' && text !== '*') return undefined
  }
  return undefined
}
