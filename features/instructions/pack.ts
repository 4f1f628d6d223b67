/** Wires instructions: the block of the system prompt, reminders of files beside the work, and the warnings of a session. */
import { definePack } from '../../kernel/index.ts'
import { PromptBlocks, StepInjectors } from '../agent/index.ts'
import { HistoryStates } from '../history/index.ts'
import { Sessions } from '../sessions/index.ts'
import { readWarnings } from './contract.ts'
import { collect, placesFor, stampOf } from './files.ts'
import { LookedSlot, nearbyInjector } from './nearby.ts'
import { touchedState } from './touched.ts'

const code = 'agents-md-oversized'

const heading = `# Project instructions
The files below describe this project. They are the project's wishes, more specific ones win over general ones; what the user says in the conversation wins over all of them.`

export default definePack({
  name: 'instructions',
  description: 'Instruction files (AGENTS.md) in the system prompt, and those beside the work',
  area: 'Agent',
  needs: { sessions: Sessions },
  setup(ctx, { sessions }) {
    const homes = { home: ctx.home }
    ctx.slot(LookedSlot)
    ctx.contribute(HistoryStates, touchedState)
    ctx.contribute(StepInjectors, nearbyInjector(homes))
    ctx.contribute(PromptBlocks, {
      name: 'instructions',
      order: 400,
      basis: async ({ session }) => stampOf(await placesFor(session.cwd, homes)),
      async render({ session }) {
        const { text, warning } = await collect(await placesFor(session.cwd, homes), homes.home)
        return {
          text: text === '' ? '' : `${heading}\n\n${text}`,
          variables: { agents_md: text },
          warnings: warning === undefined ? [] : [{ code, message: warning }]
        }
      }
    })
    ctx.route(readWarnings, async ({ params }) => {
      const { cwd } = await sessions.load(params.session_id)
      const { warning } = await collect(await placesFor(cwd, homes), homes.home)
      return { warnings: warning === undefined ? [] : [{ code, message: warning, severity: 'warning' as const }] }
    })
  }
})
