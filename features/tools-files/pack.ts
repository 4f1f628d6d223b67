/** Wires tools-files: Read, Write, Edit, Glob and Grep on the local file system. */
import { definePack, defineSlot } from '../../kernel/index.ts'
import { Histories, HistoryStates } from '../history/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { ToolAuthority, type ToolEnv, Tools } from '../tools/index.ts'
import { createEdit } from './edit.ts'
import { nodeFileOps } from './file-ops.ts'
import { FilesSeen, seenState } from './files-seen.ts'
import { createGlob } from './glob.ts'
import { createGrep } from './grep.ts'
import { createRead } from './read.ts'
import { createRipgrep, findRipgrep } from './ripgrep.ts'
import type { SearchEngine } from './search.ts'
import { walker } from './walker.ts'
import { createWrite } from './write.ts'

export default definePack({
  name: 'tools-files',
  description: 'Read, Write, Edit, Glob and Grep',
  area: 'Tools',
  needs: { authority: ToolAuthority },
  optional: { histories: Histories },
  setup(ctx, { authority, histories }) {
    const slot = defineSlot<Promise<FilesSeen>, AgentHost>('tools-files', async agent =>
      FilesSeen.open(await histories()?.of(agent), ctx.log)
    )
    ctx.slot(slot)
    ctx.contribute(HistoryStates, seenState)
    const files = { ops: nodeFileOps, home: ctx.home, seen: (env: ToolEnv) => env.agent.get(slot) }

    let engine: Promise<SearchEngine> | undefined
    const find = async () => {
      const program = await findRipgrep(process.env)
      if (program === undefined) ctx.log.warn('ripgrep was not found; Glob and Grep use a slower built-in search')
      return program === undefined ? walker : createRipgrep(program)
    }
    const search = {
      ops: nodeFileOps,
      home: ctx.home,
      engine() {
        engine ??= find()
        return engine
      },
      readable: (env: ToolEnv) => authority.readable(env),
      signal: ctx.signal
    }

    for (const tool of [createRead(files), createWrite(files), createEdit(files)]) ctx.contribute(Tools, tool)
    for (const tool of [createGlob(search), createGrep(search)]) ctx.contribute(Tools, tool)
  }
})
