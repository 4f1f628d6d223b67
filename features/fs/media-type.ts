/** Media types and languages by the names of files. */
import { posix } from 'node:path'

const languages: Readonly<Record<string, string>> = {
  ts: 'typescript',
  mts: 'typescript',
  cts: 'typescript',
  tsx: 'typescriptreact',
  js: 'javascript',
  mjs: 'javascript',
  cjs: 'javascript',
  jsx: 'javascriptreact',
  json: 'json',
  jsonl: 'jsonl',
  jsonc: 'jsonc',
  md: 'markdown',
  markdown: 'markdown',
  html: 'html',
  htm: 'html',
  css: 'css',
  scss: 'scss',
  less: 'less',
  vue: 'vue',
  svelte: 'svelte',
  yaml: 'yaml',
  yml: 'yaml',
  toml: 'toml',
  ini: 'ini',
  xml: 'xml',
  svg: 'xml',
  sh: 'shellscript',
  bash: 'shellscript',
  zsh: 'shellscript',
  fish: 'fish',
  ps1: 'powershell',
  bat: 'bat',
  py: 'python',
  pyi: 'python',
  rb: 'ruby',
  php: 'php',
  rs: 'rust',
  go: 'go',
  java: 'java',
  kt: 'kotlin',
  kts: 'kotlin',
  scala: 'scala',
  swift: 'swift',
  c: 'c',
  h: 'c',
  cc: 'cpp',
  cpp: 'cpp',
  cxx: 'cpp',
  hpp: 'cpp',
  hh: 'cpp',
  cs: 'csharp',
  m: 'objective-c',
  lua: 'lua',
  pl: 'perl',
  r: 'r',
  dart: 'dart',
  ex: 'elixir',
  exs: 'elixir',
  erl: 'erlang',
  hs: 'haskell',
  clj: 'clojure',
  sql: 'sql',
  graphql: 'graphql',
  proto: 'proto',
  tex: 'latex',
  diff: 'diff',
  patch: 'diff',
  dockerfile: 'dockerfile',
  makefile: 'makefile',
  mk: 'makefile',
  txt: 'plaintext',
  log: 'log'
}

/** What the library calls something else (video, relational lists), or does not know. */
const types: Readonly<Record<string, string>> = {
  ts: 'text/typescript',
  mts: 'text/typescript',
  cts: 'text/typescript',
  tsx: 'text/typescript',
  js: 'text/javascript',
  mjs: 'text/javascript',
  cjs: 'text/javascript',
  jsx: 'text/javascript',
  rs: 'text/rust',
  go: 'text/x-go',
  py: 'text/x-python',
  pyi: 'text/x-python',
  sh: 'text/x-shellscript',
  vue: 'text/plain',
  svelte: 'text/plain',
  toml: 'application/toml',
  yaml: 'application/yaml',
  yml: 'application/yaml',
  jsonl: 'application/jsonl'
}

/** Ending without its dot, in small letters; the whole name where there is none (`Dockerfile`). */
function endingOf(name: string): string {
  return (posix.extname(name).slice(1) || name).toLowerCase()
}

export function languageOf(name: string): string | undefined {
  const ending = endingOf(name)
  return Object.hasOwn(languages, ending) ? languages[ending] : undefined
}

/** Undefined where the name says nothing. */
export async function typeOfName(name: string): Promise<string | undefined> {
  const ending = endingOf(name)
  if (Object.hasOwn(types, ending)) return types[ending]
  const { default: mime } = await import('mime')
  return posix.extname(name) === '' ? undefined : (mime.getType(ending) ?? undefined)
}
