/** Words of compilers, linters and formatters that make them run or write something else than their name says. */
import { any, either, flags, obeys, type Risk, rewrites, writes } from './risk.ts'

/** A formatter that is named by its path is a program. */
const formatter: Risk = words => (word, index) =>
  word.includes('/') && /^(?:-f|--format)/.test(word.startsWith('-') ? word : (words[index - 1] ?? ''))

/** Only its subcommand `format` writes where nothing says so. */
const ruffFormat: Risk = words => (words.includes('format') ? rewrites(/^--(?:check|diff)$/)(words) : () => false)

/** By names of programs, as in `flags.ts`. */
export const building: readonly (readonly [string, Risk | RegExp])[] = [
  ['ar nm objdump ranlib', flags('', 'plugin')],
  ['autopep8 clang-format yapf', /^(?:-[a-z]{0,2}i|--in-?place)$/],
  ['biome', /^(?:--(?:apply|fix|suppress|unsafe|write)|(?:init|migrate)$)/],
  ['black', rewrites(/^(?:--(?:check|code|diff|help|version)|-[ch]$)/)],
  [
    'c++ cc clang clang++ g++ gcc',
    either(
      writes(/^(?:-o|-M[FJ]|--output|-dump(?:base|dir))/),
      any(
        /^(?:@|-(?:B|fpass-plugin|fplugin|fuse-ld|iplugindir|load|wrapper|Xassembler|Xclang|Xlinker)|--?specs|--ld-path)|^-W[alp],(?:.*,)?(?:--?plugin|--?o|--?Map[=,][/~.]|@)/
      )
    )
  ],
  [
    'eslint',
    either(
      formatter,
      writes(/^(?:-o|--(?:cache-file|cache-location|output-file))/),
      obeys(/^(?:-c|--config)/),
      any(/^--(?:fix(?:=|$)|init|parser(?!-)|plugin|resolve-plugins|rulesdir)/)
    )
  ],
  ['gofmt goimports shfmt', /^--?(?:w|write)(?:=|$)/],
  ['isort', rewrites(/^(?:-[cdh]|--(?:check|check-only|diff|help|version))$/)],
  ['patch', flags('deorBYz', 'basename-prefix directory ed output prefix reject-file suffix', '', /^[/~]|(?:^|\/)\.\.(?:\/|$)/)],
  ['prettier', either(flags('w', 'plugin plugin-search-dir write'), writes(/^--cache-location/), obeys(/^--(?:config|parser)/))],
  [
    'py.test pytest',
    either(
      writes(/^--(?:debug|junit-?xml|log-file)(?=$|=)/),
      obeys(/^(?:-c|--(?:config-file|confcutdir|rootdir))/),
      any(/^(?:-p|--(?:basetemp|pastebin))/)
    )
  ],
  ['ruff', either(ruffFormat, any(/^(?:--(?:add-noqa|fix(?!able)|unsafe-fixes)|clean$)/))],
  [
    'rustc',
    either(
      writes(/^(?:-o|--(?:emit|out-dir))/),
      any(
        /^(?:@|-Z|(?:-C|--codegen=)?(?:ar|link-args?|linker|llvm-args|profile-generate)(?:=|$)|--emit=.*=[/~.]|(?:--extern=)?[\w-]+=[/~.])/
      )
    )
  ],
  ['rustfmt', rewrites(/^(?:--(?:check|help|print-config|version)|-[hV])$/)],
  [
    'tsc',
    either(
      writes(/^--?(?:declarationDir|generateCpuProfile|generateTrace|outDir|outFile|tsBuildInfoFile)(?=$|=)/i),
      obeys(/^--?(?:b|build|p|project)(?=$|=)/i)
    )
  ]
]
