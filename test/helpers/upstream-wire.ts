/** What the fake upstream and the wire formats it speaks share. */

export interface ScriptedTool {
  readonly name: string
  readonly args: unknown
  /** Default `call_<n>`; null leaves it out. */
  readonly id?: string | null
  readonly pieces?: number
}

export interface ScriptedUsage {
  /** Whole input, cached part included. */
  readonly input: number
  readonly output: number
  readonly cached?: number
}

/** How a provider's wire format writes the steps. Every function returns the bytes of complete events. */
export interface UpstreamWire {
  /** Added to the server's address to form the base URL a user would configure: `/v1`. */
  readonly base_path: string
  readonly content_type: string
  start(reply: WireReply): string[]
  text(piece: string, reply: WireReply): string
  thinking(piece: string, reply: WireReply): string
  /** Events of some parallel calls, in stream order. */
  tools(calls: readonly ScriptedTool[], reply: WireReply): string[]
  usage(usage: ScriptedUsage, reply: WireReply): string[]
  finish(reason: string, reply: WireReply): string[]
  /** Last bytes of a good stream. */
  done(reply: WireReply): string[]
  /** Body of an HTTP error in this format. */
  failure(status: number, message: string): unknown
}

/** What one reply has sent so far; formats keep their counters in `state`. */
export interface WireReply {
  readonly n: number
  readonly model: string
  tool_count: number
  readonly state: Record<string, unknown>
}

/** Cuts a text into `count` pieces of about equal length, between code points. */
export function cut(text: string, count: number): string[] {
  const place = (i: number) => {
    const at = Math.floor((i * text.length) / count)
    return (text.codePointAt(at - 1) ?? 0) > 0xffff ? at + 1 : at
  }
  const found: string[] = []
  for (let i = 0; i < count; i++) {
    const piece = text.slice(place(i), place(i + 1))
    if (piece !== '' || count === 1) found.push(piece)
  }
  return found
}
