/** Parameters of the web tools, and the options of their pack. */
import { milliseconds, Type } from '../../kernel/index.ts'

const closed = { additionalProperties: false } as const

export const fetchParameters = Type.Object(
  { url: Type.String({ minLength: 1, maxLength: 8192, description: 'Absolute http or https address' }) },
  closed
)

export const searchParameters = Type.Object(
  { query: Type.String({ minLength: 1, maxLength: 1000, description: 'What to search for' }) },
  closed
)

/** Deployment options. */
export const Options = Type.Object({
  timeout_ms: milliseconds({ minimum: 1, default: 60_000, description: 'how long a page or a service may take' }),
  extract_ms: milliseconds({
    minimum: 1,
    default: 10_000,
    description: 'how long the article of a page may be looked for; then its plain text is taken'
  }),
  allow_addresses: Type.Array(Type.String(), {
    default: [],
    description: 'private networks that FetchURL may call all the same: 10.1.0.0/16, fd00::/8'
  })
})
