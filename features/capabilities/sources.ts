/** Where the parts of the built-in capabilities come from: deployment options. What is not named is not installed. */
import { type Static, Type } from '../../kernel/index.ts'

const line = Type.String({ minLength: 1, maxLength: 4096 })
const shared = {
  plugin: Type.Optional(Type.String({ minLength: 1, maxLength: 4096, description: 'source of the plugin, as `POST /plugins` takes it' })),
  program: Type.Optional(
    Type.Object(
      {
        url: Type.String({ pattern: '^https?://', maxLength: 4096 }),
        sha256: Type.String({ pattern: '^[0-9a-fA-F]{64}$', description: 'of the file; another one is refused' })
      },
      { additionalProperties: false }
    )
  ),
  start: Type.Optional(Type.String({ ...line, description: 'shell line that lets the service manager of the system start the program' }))
}
/** What both have. */
export type SharedSource = Pick<WebBridgeSource, keyof typeof shared>

export const WebBridgeSource = Type.Object(
  {
    ...shared,
    extensions: Type.Optional(Type.Array(Type.String({ pattern: '^[a-p]{32}$' }), { description: 'ids of the browser extension' }))
  },
  { additionalProperties: false }
)
export type WebBridgeSource = Static<typeof WebBridgeSource>

export const ComputerUseSource = Type.Object(
  {
    ...shared,
    install: Type.Optional(Type.String({ ...line, description: 'shell line that installs the downloaded file, `SVC_CAPABILITY_FILE`' })),
    app: Type.Optional(Type.String({ ...line, description: 'absolute path where the app is, once it is installed' })),
    permissions: Type.Optional(
      Type.String({ ...line, description: 'shell line that exits with 0 when the system lets the app see and control the screen' })
    )
  },
  { additionalProperties: false }
)
export type ComputerUseSource = Static<typeof ComputerUseSource>
