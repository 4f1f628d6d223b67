/** Which tools exist, which of them an agent may use, and how models and clients see them. */
import type { Static } from '../../kernel/index.ts'
import type { LlmTool } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { closed } from './arguments.ts'
import type { ToolEntry } from './contract.ts'
import { matchText } from './glob.ts'
import type { Tool, ToolPolicy } from './tool.ts'

export interface RegistryPorts {
  readonly tools: () => readonly Tool[]
  readonly policies: () => readonly ToolPolicy[]
}

/** Live view of the contributed tools. Of two tools with one name the first counts. */
export class Registry {
  readonly #ports: RegistryPorts
  readonly #schemas = new WeakMap<Tool, Readonly<Record<string, unknown>>>()

  constructor(ports: RegistryPorts) {
    this.#ports = ports
  }

  find(name: string): Tool | undefined {
    return this.#ports.tools().find(tool => tool.name === name)
  }

  /** Why the agent must not use the tool; undefined when it may. */
  refusal(agent: AgentHost, tool: Tool): string | undefined {
    for (const policy of this.#ports.policies()) {
      const reason = policy.refuses(agent, tool)
      if (reason !== undefined) return reason
    }
    return undefined
  }

  /** What goes to the model. */
  forModel(agent: AgentHost): LlmTool[] {
    return this.#unique()
      .filter(tool => this.refusal(agent, tool) === undefined)
      .map(tool => ({ name: tool.name, description: tool.description, parameters: this.#schema(tool) }))
  }

  /** What clients see; without an agent every tool counts as active. */
  forClients(agent: AgentHost | undefined): Static<typeof ToolEntry>[] {
    return this.#unique().map(tool => {
      const server = tool.source === 'mcp' ? /^mcp__(.+?)__/.exec(tool.name)?.[1] : undefined
      return {
        name: tool.name,
        description: tool.description,
        input_schema: null,
        source: tool.source,
        ...(server === undefined ? {} : { mcp_server_id: server }),
        active: agent === undefined || this.refusal(agent, tool) === undefined
      }
    })
  }

  #unique(): Tool[] {
    return [...new Map([...this.#ports.tools()].reverse().map(tool => [tool.name, tool])).values()].reverse()
  }

  #schema(tool: Tool): Readonly<Record<string, unknown>> {
    let schema = this.#schemas.get(tool)
    if (!schema) {
      schema = tool.model_schema ?? (JSON.parse(JSON.stringify(closed(tool.parameters))) as Record<string, unknown>)
      this.#schemas.set(tool, schema)
    }
    return schema
  }
}

/** The policy behind the configuration's `tools.enabled` and `tools.disabled`. */
export function configPolicy(read: () => { readonly enabled?: readonly string[]; readonly disabled?: readonly string[] }): ToolPolicy {
  return {
    name: 'config',
    refuses(_agent, tool) {
      const { enabled = [], disabled = [] } = read()
      const off = (enabled.length > 0 && !enabled.some(entry => names(entry, tool))) || disabled.some(entry => names(entry, tool))
      return off ? `The tool ${tool.name} is switched off in the configuration.` : undefined
    }
  }
}

/** Built-in names match exactly, `mcp__` entries as globs. */
function names(entry: string, tool: Tool): boolean {
  return entry.startsWith('mcp__') ? matchText(entry, tool.name) : entry === tool.name
}
