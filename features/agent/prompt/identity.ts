/** Name by which the agent calls itself, as the user wishes (`identity.name`). */
import { Type } from '../../../kernel/index.ts'
import { type ConfigSection, Environment } from '../../config/index.ts'

const Identity = Type.Object({ name: Type.Optional(Type.String({ pattern: '^.{1,100}$', description: 'One line' })) })
export const identitySection: ConfigSection<typeof Identity> = {
  name: 'identity',
  schema: Identity,
  default: {},
  overlay: (env, report) => {
    const name = new Environment(env, report).text('IDENTITY_NAME')
    return name === undefined ? undefined : { name }
  }
}
