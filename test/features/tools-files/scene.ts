/** The file tools over a temporary directory. */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { SearchEngine } from '../../../features/file-search/index.ts'
import { walker } from '../../../features/file-search/walker.ts'
import { createEdit } from '../../../features/tools-files/edit.ts'
import { nodeFileOps } from '../../../features/tools-files/file-ops.ts'
import { FilesSeen } from '../../../features/tools-files/files-seen.ts'
import { createGlob } from '../../../features/tools-files/glob.ts'
import { createGrep } from '../../../features/tools-files/grep.ts'
import { createRead } from '../../../features/tools-files/read.ts'
import { createWrite } from '../../../features/tools-files/write.ts'
import { fakeAgent, permissive, scene, silent, type TestLike, temporary } from '../tools/fakes.ts'

export async function files(t: TestLike, engine: SearchEngine = walker) {
  const agent = await fakeAgent(t, { cwd: await temporary() })
  const cwd = agent.session.cwd
  const seen = await FilesSeen.open(undefined, silent)
  const home = join(cwd, '..', 'home')
  const ports = { ops: nodeFileOps, home, seen: async () => seen }
  const search = { ops: nodeFileOps, home, engine: async () => engine, readable: permissive.readable }
  const tools = [createRead(ports), createWrite(ports), createEdit(ports), createGlob(search), createGrep(search)]
  const stage = await scene(t, tools, { agent })
  let turn = 0
  return {
    ...stage,
    cwd,
    /** Writes a file below the working directory, behind the agent's back. */
    async put(path: string, content: string | Uint8Array): Promise<string> {
      const full = join(cwd, path)
      await mkdir(dirname(full), { recursive: true })
      await writeFile(full, content)
      return full
    },
    /** Calls one tool in a turn of its own. */
    async call(name: string, args: Record<string, unknown>) {
      const [result] = await stage.run([['call', name, JSON.stringify(args)]], { turn_id: turn++ })
      return { ...result, output: String(result?.output) }
    }
  }
}
