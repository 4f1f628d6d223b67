/** The user's file of MCP servers: changed under a lock, everything else in it stays. */
import { AppError, FileUnusable, invalid } from '../../kernel/index.ts'
import { lockBounded, replaceBounded } from '../config/index.ts'
import { fileBytes, McpServerMissing, serverFileText, serversIn, userFile } from '../mcp/index.ts'

type Servers = Readonly<Record<string, unknown>>

/** `change` gets what is there and answers what is to be; it throws what refuses the change. */
export async function changeServers(home: string, change: (servers: Servers) => Servers): Promise<void> {
  const file = userFile(home)
  await lockBounded(file, async () => {
    const { content, servers } = await readServers(file)
    const others = content === '' ? {} : (JSON.parse(content) as object)
    const text = `${JSON.stringify({ ...others, mcpServers: change(servers) }, null, 2)}\n`
    await replaceBounded(file, text, fileBytes).catch((error: unknown) => {
      throw error instanceof FileUnusable ? invalid([{ path: file, message: `it could not be saved: ${error.message}` }], error) : error
    })
  })
}

/** A file that is damaged, or cannot be read, is not written over. */
async function readServers(file: string): Promise<{ readonly content: string; readonly servers: Servers }> {
  try {
    const content = (await serverFileText(file)).trim()
    return { content, servers: Object.fromEntries(serversIn(content)) }
  } catch (error) {
    throw invalid([{ path: file, message: (error as Error).message }])
  }
}

export function withServer(servers: Servers, name: string, config: unknown): Servers {
  if (Object.hasOwn(servers, name)) throw invalid([{ path: 'body.name', message: `a server called ${name} already exists` }])
  return { ...servers, [name]: config }
}

export function withOther(servers: Servers, name: string, config: unknown): Servers {
  if (!Object.hasOwn(servers, name)) throw missing(name)
  return { ...servers, [name]: config }
}

export function without(servers: Servers, name: string): Servers {
  if (!Object.hasOwn(servers, name)) throw missing(name)
  return Object.fromEntries(Object.entries(servers).filter(([each]) => each !== name))
}

export const missing = (name: string) => new AppError(McpServerMissing, { message: `MCP server not found: ${name}` })
