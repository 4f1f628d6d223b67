/** Wires tools-files: Read, Write, Edit, Glob and Grep on the local file system. */
import { definePack, defineSlot } from '../../kernel/index.ts'
import { searchEngine } from '../file-search/index.ts'
import { Histories, HistoryStates } from '../history/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { ToolAuthority, type ToolEnv, Tools } from '../tools/index.ts'
import { createEdit } from './edit.ts'
import { nodeFileOps } from './file-ops.ts'
import { FilesSeen, seenState } from './files-seen.ts'
import { createGlob } from './glob.ts'
import { createGrep } from './grep.ts'
import { createRead } from './read.ts'
import { createWrite } from './write.ts'

export default definePack({
  name: 'tools-files',
  description: 'Read, Write, Edit, Glob and Grep',
  area: 'Tools',
  needs: { authority: ToolAuthority },
  optional: { histories: Histories },
  setup(ctx, { authority, histories }) {
    const open = async (agent: AgentHost) => FilesSeen.open(await histories()?.of(agent), ctx.log)
    const slot = defineSlot('tools-files', open, histories)
    ctx.slot(slot)
    ctx.contribute(HistoryStates, seenState)
    const files = { ops: nodeFileOps, home: ctx.home, seen: (env: ToolEnv) => env.agent.get(slot) }

    let warned = false
    const engine = async () => {
      const found = await searchEngine()
      if (found.program === undefined && !warned) ctx.log.warn('ripgrep was not found; Glob and Grep use a slower built-in search')
      warned = true
      return found.engine
    }
    const search = {
      ops: nodeFileOps,
      home: ctx.home,
      engine,
      readable: (env: ToolEnv) => authority.readable(env)
    }

    for (const tool of [createRead(files), createWrite(files), createEdit(files)]) ctx.contribute(Tools, tool)
    for (const tool of [createGlob(search), createGrep(search)]) ctx.contribute(Tools, tool)
  }
})
