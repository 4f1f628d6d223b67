/** Plan mode on record and on the wire: what is written down, the event of a revision, the tools' parameters. */
import { defineEvent, defineStore, oneOf, type Static, Type } from '../../kernel/index.ts'
import { defineRecord } from '../history/index.ts'

const Id = Type.String({ minLength: 1, description: 'names the plan file: three words' })

export const planEntered = defineRecord('plan.entered', Type.Object({ id: Id, by: oneOf(['user', 'tool', 'default']) }))
export const planLeft = defineRecord('plan.left', Type.Object({ id: Id, how: oneOf(['user', 'approved', 'rejected', 'unreviewed']) }))

const revision = {
  id: Id,
  version: Type.Integer({ minimum: 1 }),
  path: Type.String({ description: 'below the directory of the agent: `plan/<id>/v<version>.md`' }),
  sha256: Type.String({ description: 'of the bytes, hex' }),
  bytes: Type.Integer({ minimum: 1 })
}
/** The plan as it was put up for review. */
export const planRevised = defineRecord('plan.revision', Type.Object(revision))

export const planRevision = defineEvent({
  type: 'plan.revision',
  scope: 'session',
  durable: true,
  payload: Type.Object(revision),
  summary: 'A plan was put up for review, and kept as it was'
})

/** `<agent dir>/plan/<id>/v<version>.md` */
export const revisionStore = defineStore({ name: 'plan-revisions', kind: 'blob', value: Type.Unknown() })
export const revisionId = (id: string, version: number): string => `plan/${id}/v${version}.md`

const closed = { additionalProperties: false } as const

export const enterParameters = Type.Object({}, closed)

export const exitParameters = Type.Object(
  {
    options: Type.Optional(
      Type.Array(
        Type.Object(
          {
            label: Type.String({ minLength: 1, maxLength: 80, description: 'The approach in a few words' }),
            description: Type.Optional(Type.String({ maxLength: 2000, description: 'What choosing it means' }))
          },
          closed
        ),
        { minItems: 1, maxItems: 3, description: 'Approaches of the plan between which the user is to choose; leave out when there is one' }
      )
    )
  },
  closed
)
export type PlanOption = Required<NonNullable<Static<typeof exitParameters>['options']>[number]>
