/**
 * House rules: a third-party pack that takes part in turns. It refuses commands and prompts, tells the model the rules, and what a program
 * that it runs from time to time says about the machine.
 *
 * Options: `refused_commands`, `refused_words`, `rules`, `probe`, `probe_every_ms`. No routes, no events of its own.
 */
import { PromptBlocks, TurnHooks } from '../../features/agent/index.ts'
import { ToolHooks } from '../../features/tools/index.ts'
import { definePack, milliseconds, Type } from '../../kernel/index.ts'

const texts = (description: string, standard: string[] = []) =>
  Type.Array(Type.String({ minLength: 1 }), { default: standard, description })
const probeBytes = 2_000

export default definePack({
  name: 'house-rules',
  description: 'Refuses commands and prompts, and tells the model the rules of the house',
  needs: { tools: ToolHooks, turns: TurnHooks },
  config: Type.Object({
    refused_commands: texts('Bash does not run what holds one of these', ['git push --force']),
    refused_words: texts('A prompt with one of these is not run'),
    rules: Type.String({ default: '', description: 'For the system prompt' }),
    probe: texts('Program and arguments; what it prints goes into the system prompt, the first 2,000 bytes of it'),
    probe_every_ms: milliseconds({ minimum: 10, default: 60_000, description: 'From its end to its next start' })
  }),
  setup(ctx, { tools, turns }) {
    const { refused_commands, refused_words, rules, probe, probe_every_ms } = ctx.config
    let machine = ''

    // A guard: an answer refuses the call, undefined has no objection. No guard can permit a call; the user's rules come after it.
    ctx.tap(tools.before, async ({ tool, args }) => {
      const refused = tool.name === 'Bash' ? refused_commands.find(text => String(args.command).includes(text)) : undefined
      return refused === undefined ? undefined : { kind: 'deny', output: `The rules of the house refuse '${refused}'.` }
    })

    // Before a prompt gets its turn: whoever answers refuses it.
    ctx.tap(turns.beforePrompt, async ({ content }) => {
      const text = content.map(part => (part.type === 'text' ? part.text : '')).join('\n')
      const word = refused_words.find(one => text.includes(one))
      return word === undefined ? undefined : { event: 'HouseRules', reason: `Prompts must not mention '${word}'.` }
    })

    // `basis` is asked when a turn begins: another answer than before renders the system prompt anew.
    const block = () => [rules, machine && `This machine says: ${machine}`].filter(Boolean).join('\n')
    ctx.contribute(PromptBlocks, { name: 'house-rules', order: 600, render: block, basis: block })

    /** The child belongs to the pack: it ends at the latest when the pack does, with everything that it started. */
    async function look([program = '', ...args]: readonly string[]): Promise<void> {
      const child = ctx.spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] })
      let said = ''
      child.stdout?.setEncoding('utf8').on('data', (text: string) => {
        said = (said + text).slice(0, probeBytes)
      })
      await new Promise<void>(resolve => child.once('close', () => resolve()))
      machine = said.trim()
    }
    if (probe.length === 0) return
    ctx.background(() => look(probe))
    ctx.timer(probe_every_ms, () => look(probe))
  }
})
