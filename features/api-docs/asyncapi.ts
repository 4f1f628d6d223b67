/** The AsyncAPI 3.1 document of the WebSocket: exactly the given events and frames. */
import type { Declarations, TSchema } from '../../kernel/index.ts'
import { asyncapiAck, asyncapiEvent, asyncapiOutFrame, asyncapiRequest, type Message } from './asyncapi-messages.ts'
import { DocumentSchemas, uniqueName } from './document-schema.ts'

const description = `Authentication happens at the upgrade: \`Authorization: Bearer <token>\` or the subprotocol \`svc-code.bearer.<token>\`.
Global events reach every connection, session events those that subscribed. Durable events are numbered by \`seq\` and replayed after
a reconnect; volatile ones carry the number of the last durable event. No heartbeats, no idle close.`

/**
 * Pure: the same declarations give the same document. Client frames are named by their type, answers `<type>_ack`, server frames and
 * events by their type; a name that is taken already gets `_2`.
 */
export function asyncapiDocument(
  { events, frames, outFrames, systemFrames, subject }: Omit<Declarations, 'routes'>,
  info: { readonly title: string; readonly version: string }
): object {
  const schemas = new DocumentSchemas()
  const copy = (schema: TSchema) => schemas.copy(schema)
  const messages: Record<string, Message> = {}
  const add = (name: string, message: Message) => {
    const key = uniqueName(name.replace(/[^\w.-]/g, '_'), taken => Object.hasOwn(messages, taken))
    messages[key] = message
    return { $ref: `#/channels/ws/messages/${key}` }
  }
  const requests = byType(frames)
  const received = requests.map(spec => add(spec.type, asyncapiRequest(spec, copy)))
  const acks = requests.map(spec => add(`${spec.type}_ack`, asyncapiAck(spec, copy)))
  const system = systemFrames.map(spec => add(spec.type, asyncapiOutFrame(spec, copy, true)))
  const others = byType(outFrames).map(spec => add(spec.type, asyncapiOutFrame(spec, copy)))
  const emitted = byType(events).map(spec => add(spec.type, asyncapiEvent(spec, copy, subject?.field)))

  const channel = { $ref: '#/channels/ws' }
  const security = [{ $ref: '#/components/securitySchemes/bearer' }]
  return {
    asyncapi: '3.1.0',
    info: { title: info.title, version: info.version, description },
    defaultContentType: 'application/json',
    channels: {
      ws: {
        address: '/api/v1/ws',
        title: 'Realtime connection',
        messages: Object.fromEntries(Object.keys(messages).map(key => [key, { $ref: `#/components/messages/${key}` }]))
      }
    },
    operations: {
      receiveClientMessages: {
        action: 'receive',
        channel,
        summary: 'Control frames; each is answered by an ack, one after another in arrival order',
        security,
        messages: received,
        reply: { channel, messages: acks }
      },
      sendServerMessages: {
        action: 'send',
        channel,
        summary: 'System frames, acks, events and streams',
        security,
        messages: [...system, ...acks, ...others, ...emitted]
      }
    },
    components: {
      messages,
      schemas: schemas.shared,
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'Token of the server' } }
    }
  }
}

/** Packs come and go in any order; the document does not show it. */
function byType<S extends { readonly type: string }>(specs: readonly S[]): S[] {
  return [...specs].sort((a, b) => (a.type < b.type ? -1 : a.type > b.type ? 1 : 0))
}
