/** Wires user-hooks: rules of the configuration and of packs, the hooks that decide, and those that hear. */
import { askEach, definePack } from '../../kernel/index.ts'
import { Agents, TurnHooks } from '../agent/index.ts'
import { Config, hooksSection } from '../config/index.ts'
import { Llm } from '../llm/index.ts'
import { Sessions } from '../sessions/index.ts'
import { ToolHooks } from '../tools/index.ts'
import { Shell } from '../tools-shell/index.ts'
import { HookSources } from './contract.ts'
import { keepTapped } from './deciding.ts'
import { tellHooks } from './notices.ts'
import { HookRules } from './rules.ts'
import { HookRunner } from './runner.ts'

export default definePack({
  name: 'user-hooks',
  description: "Commands of the user at moments of a session's life",
  area: 'Agent',
  needs: { config: Config, sessions: Sessions, turns: TurnHooks, tools: ToolHooks },
  optional: { shell: Shell, agents: Agents, llm: Llm },
  setup(ctx, { config, sessions, turns, tools, shell, agents, llm }) {
    const sources = ctx.collect(HookSources)
    const ofPacks = () =>
      askEach(
        sources.entries(),
        ctx,
        () => 'hook rules',
        source => source.rules()
      )
    const rules = new HookRules(() => [...config.get(hooksSection), ...ofPacks()], ctx.log)
    const runner = new HookRunner({ rules, shell, log: ctx.log })
    const retap = keepTapped(ctx, { rules, runner, turns, tools })
    const refresh = () => {
      rules.refresh()
      retap()
    }
    retap()
    tellHooks(ctx, { rules, runner, sessions, agents, llm })
    config.onChange(({ fields }) => fields.includes(hooksSection.name) && refresh())
    sources.onChange(refresh)
  }
})
