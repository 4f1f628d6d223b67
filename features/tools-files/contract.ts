/** Parameters of the file tools. */
import { oneOf, Type } from '../../kernel/index.ts'

const closed = { additionalProperties: false } as const
const path = (description: string) => Type.String({ minLength: 1, maxLength: 4096, description })

export const readParameters = Type.Object(
  {
    path: path('File to read; relative to the working directory, or absolute'),
    line_offset: Type.Optional(
      Type.Union([Type.Integer({ minimum: 1 }), Type.Integer({ minimum: -1000, maximum: -1 })], {
        description: 'First line, from 1; negative: counted from the end; default 1'
      })
    ),
    n_lines: Type.Optional(Type.Integer({ minimum: 1, description: 'Number of lines; default and at most 1000' }))
  },
  closed
)

export const writeParameters = Type.Object(
  {
    path: path('File to write; missing directories are created'),
    content: Type.String({ description: 'Text, written as it is' }),
    mode: Type.Optional(oneOf(['overwrite', 'append'], { description: 'default overwrite' }))
  },
  closed
)

export const editParameters = Type.Object(
  {
    path: path('File to change'),
    old_string: Type.String({ minLength: 1, description: 'Text to replace, exactly as Read shows it, without line numbers' }),
    new_string: Type.String({ description: 'Replacement' }),
    replace_all: Type.Optional(Type.Boolean({ description: 'Replace every occurrence; default false' }))
  },
  closed
)

const pattern = (description: string) => Type.String({ minLength: 1, maxLength: 1000, description })

export const globParameters = Type.Object(
  {
    pattern: pattern('Glob such as src/**/*.ts; without a slash it matches names at any depth'),
    path: Type.Optional(path('Directory to search; default: the working directory')),
    include_ignored: Type.Optional(Type.Boolean({ description: 'Also files that ignore files exclude; default false' })),
    include_dirs: Type.Optional(Type.Boolean({ description: 'Accepted without effect: only files are listed' }))
  },
  closed
)

const count = (description: string) => Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000, description }))

export const grepParameters = Type.Object(
  {
    pattern: pattern('Regular expression'),
    path: Type.Optional(path('File or directory to search; default: the working directory')),
    glob: Type.Optional(pattern('Only files that match this glob')),
    type: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_+-]{1,40}$', description: 'Only files of this type: js, py, rust, ...' })),
    output_mode: Type.Optional(oneOf(['files_with_matches', 'content', 'count_matches'], { description: 'default files_with_matches' })),
    '-i': Type.Optional(Type.Boolean({ description: 'Ignore case' })),
    '-n': Type.Optional(Type.Boolean({ description: 'Line numbers in content mode; default true' })),
    '-A': count('Lines after each match (content mode)'),
    '-B': count('Lines before each match (content mode)'),
    '-C': count('Lines around each match (content mode); wins over -A and -B'),
    head_limit: count('Number of result lines; default 250, 0 for all'),
    offset: count('Result lines to skip; default 0'),
    multiline: Type.Optional(Type.Boolean({ description: 'Matches may span lines, and . matches line breaks' })),
    include_ignored: Type.Optional(Type.Boolean({ description: 'Also files that ignore files exclude; default false' }))
  },
  closed
)
