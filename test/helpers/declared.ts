/** What packs put on the wire, written down while a real kernel sets them up. */
import type { AnyRoute, EventSpec, FrameSpec, OutFrameSpec, Pack, PackContext } from '../../kernel/index.ts'

export interface Declared {
  readonly routes: AnyRoute[]
  readonly events: EventSpec[]
  readonly frames: FrameSpec[]
  readonly outFrames: OutFrameSpec[]
}

/** The same packs; everything they put on the wire is also written down. */
export function recorded(packs: readonly Pack[]): { packs: Pack[]; declared: Declared } {
  const declared: Declared = { routes: [], events: [], frames: [], outFrames: [] }
  const listen = (context: PackContext<never>): PackContext<never> => ({
    ...context,
    route(spec, handler) {
      if (!spec.fallback) declared.routes.push(spec) // stands in for a page of another pack
      return context.route(spec, handler)
    },
    event(spec) {
      declared.events.push(spec)
      return context.event(spec)
    },
    frame(spec, handler) {
      declared.frames.push(spec)
      return context.frame(spec, handler)
    },
    outFrame(spec) {
      declared.outFrames.push(spec)
      return context.outFrame(spec)
    }
  })
  return { packs: packs.map(pack => ({ ...pack, setup: (context, services) => pack.setup(listen(context), services) })), declared }
}
