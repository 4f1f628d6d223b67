/** The `image` section of the configuration, and the parameters of ReadMediaFile. */
import { type Static, Type } from '../../kernel/index.ts'
import { type ConfigSection, Environment } from '../config/index.ts'

const count = (description: string) => Type.Optional(Type.Integer({ minimum: 1, description }))
const Image = Type.Object({
  max_edge_px: count('Longest edge of images that models get'),
  read_byte_budget: count('Bytes of an image that ReadMediaFile answers')
})
const defaults = { max_edge_px: 2000, read_byte_budget: 262_144 }

/** How large images may be when models get them. */
export const imageSection: ConfigSection<typeof Image> = {
  name: 'image',
  schema: Image,
  default: defaults,
  overlay: (env, report) => {
    const variables = new Environment(env, report)
    const max_edge_px = variables.integer('IMAGE_MAX_EDGE_PX', 1)
    const read_byte_budget = variables.integer('IMAGE_READ_BYTE_BUDGET', 1)
    if (max_edge_px === undefined && read_byte_budget === undefined) return undefined
    return { ...(max_edge_px === undefined ? {} : { max_edge_px }), ...(read_byte_budget === undefined ? {} : { read_byte_budget }) }
  }
}
export type ImageLimits = Readonly<typeof defaults>

/** What counts: a value that is absent is the default. */
export const limitsOf = (section: Static<typeof Image> = {}): ImageLimits => ({ ...defaults, ...section })

/** Of images that go to models whole: prompts, regions, `full_resolution`. */
export const fullBytes = Math.floor(3.75 * 1024 * 1024)

const closed = { additionalProperties: false } as const
const pixel = (description: string, minimum = 0) => Type.Integer({ minimum, maximum: 1_000_000, description })

export const readMediaParameters = Type.Object(
  {
    path: Type.String({ minLength: 1, maxLength: 4096, description: 'Image or video; relative to the working directory, or absolute' }),
    region: Type.Optional(
      Type.Object(
        {
          x: pixel('Left edge'),
          y: pixel('Upper edge'),
          width: pixel('Width', 1),
          height: pixel('Height', 1)
        },
        { ...closed, description: 'Part of an image to look at closely, in pixels of the original' }
      )
    ),
    full_resolution: Type.Optional(Type.Boolean({ description: 'The image as it is, up to 3.75 MiB; default false: made smaller' }))
  },
  closed
)
