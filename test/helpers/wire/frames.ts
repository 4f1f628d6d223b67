/** Frames against the messages of the AsyncAPI document: events, acks, and what packs send beside them. */
import { asyncapiDocument } from '../../../features/api-docs/asyncapi.ts'
import type { Declarations, TSchema } from '../../../kernel/index.ts'
import type { SeenFrame } from '../../../kernel/testing.ts'
import { noteMessage } from './coverage.ts'
import { misfit, type Node } from './shapes.ts'

const info = { title: 'svc-code', version: '1' }
const nothing = { events: [], frames: [], outFrames: [], systemFrames: [] }

type Kind = keyof typeof nothing
type Spec = Declarations[Kind][number]

interface Documented {
  readonly document: Node
  readonly schema: TSchema
  readonly subject: string | undefined
}

/** Documents of one message each; the same messages as in that of the whole server (`contract/spec-and-wire.test.ts`). */
const documents = new WeakMap<Spec, Documented>()

export function documentedMessage(kind: Kind, spec: Spec, subject: Declarations['subject']): Node {
  const known = documents.get(spec)
  const schema = 'ack' in spec ? spec.ack : spec.payload
  if (known && known.schema === schema && known.subject === subject?.field) return known.document
  const document: Node = asyncapiDocument({ ...nothing, [kind]: [spec], subject }, info)
  documents.set(spec, { document, schema, subject: subject?.field })
  return document
}

const refused: Node = asyncapiDocument({ ...nothing, subject: undefined }, info)

/** What the document has against a frame; undefined when nothing. */
export function frameProblem({ declared, frame, asked }: SeenFrame): string | undefined {
  const { bytes: _, ...sent } = frame as { bytes?: Buffer; type: string }
  const problems: string[] = []
  for (const [name, document] of candidates(declared, frame.type, asked)) {
    const problem = misfit(document, document.components.messages[name].payload, sent)
    if (problem === '') {
      noteMessage(name)
      return undefined
    }
    problems.push(problem)
  }
  return `${problems[0] ?? 'no message of the document has this type'}; the frame is ${JSON.stringify(sent).slice(0, 400)}`
}

function* candidates({ events, frames, outFrames, systemFrames, subject }: Declarations, type: string, asked: string | undefined) {
  if (type === 'ack') {
    if (asked === undefined) yield ['refused_ack', refused] as const
    for (const spec of frames)
      if (asked === undefined || spec.type === asked) yield [`${spec.type}_ack`, documentedMessage('frames', spec, subject)] as const
    if (asked !== undefined) yield ['refused_ack', refused] as const
    return
  }
  const name = type.replace(/[^\w.-]/g, '_')
  for (const spec of events) if (spec.type === type) yield [name, documentedMessage('events', spec, subject)] as const
  for (const spec of outFrames) if (spec.type === type) yield [name, documentedMessage('outFrames', spec, subject)] as const
  for (const spec of systemFrames) if (spec.type === type) yield [name, documentedMessage('systemFrames', spec, subject)] as const
}
