/** The AsyncAPI 3.1 document of the WebSocket: exactly the given events and frames. */
import type { Declarations, TSchema } from '../../kernel/index.ts'
import { Areas } from './areas.ts'
import { asyncapiAck, asyncapiEvent, asyncapiOutFrame, asyncapiRefusal, asyncapiRequest, type Message } from './asyncapi-messages.ts'
import { contactAt, type DocumentInfo, license } from './document-info.ts'
import { DocumentSchemas, uniqueName } from './document-schema.ts'

const description = `Authentication happens at the upgrade: \`Authorization: Bearer <token>\` or the subprotocol \`svc-code.bearer.<token>\`.
Global events reach every connection, session events those that subscribed. Durable events are numbered by \`seq\` and replayed after
a reconnect; volatile ones carry the number of the last durable event. No heartbeats, no idle close.`

/**
 * Pure: the same declarations give the same document. Client frames are named by their type, answers `<type>_ack`, server frames and
 * events by their type; a name that is taken already gets `_2`.
 */
export function asyncapiDocument(
  { events, frames, outFrames, systemFrames, subject }: Omit<Declarations, 'routes' | 'owners'>,
  info: DocumentInfo
): object {
  const schemas = new DocumentSchemas()
  const copy = (schema: TSchema) => schemas.copy(schema)
  const messages: Record<string, Message> = {}
  const areas = new Areas(info.owners)
  const add = (name: string, message: Message, spec: object = systemFrames) => {
    const key = uniqueName(name.replace(/[^\w.-]/g, '_'), taken => Object.hasOwn(messages, taken))
    messages[key] = { ...message, tags: [{ $ref: `#/components/tags/${areas.tagOf(spec, 'realtime')}` }] }
    return { $ref: `#/channels/ws/messages/${key}` }
  }
  const requests = byType(frames)
  const received = requests.map(spec => add(spec.type, asyncapiRequest(spec, copy), spec))
  const acks = requests.map(spec => add(`${spec.type}_ack`, asyncapiAck(spec, copy), spec))
  acks.push(add('refused_ack', asyncapiRefusal()))
  const system = systemFrames.map(spec => add(spec.type, asyncapiOutFrame(spec, copy, true)))
  const others = byType(outFrames).map(spec => add(spec.type, asyncapiOutFrame(spec, copy), spec))
  const emitted = byType(events).map(spec => add(spec.type, asyncapiEvent(spec, copy, subject?.field), spec))

  const channel = { $ref: '#/channels/ws' }
  const security = [{ $ref: '#/components/securitySchemes/bearer' }]
  return {
    asyncapi: '3.1.0',
    info: {
      title: info.title,
      version: info.version,
      description,
      contact: contactAt(info.servers),
      license,
      tags: areas.tags().map(({ name }) => ({ $ref: `#/components/tags/${name}` }))
    },
    servers: Object.fromEntries(
      (info.servers ?? []).map(({ host, description }) => ['local', { host, protocol: 'ws', description, security }])
    ),
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
        summary: 'Requests of the client',
        description:
          'Control frames; each is answered by an ack, one after another in arrival order. What a frame causes is sent before its ack.',
        security,
        messages: received,
        reply: { channel, messages: acks }
      },
      sendServerMessages: {
        action: 'send',
        channel,
        summary: 'What the server sends',
        description: 'System frames, acks, events and streams, one JSON object per message.',
        security,
        messages: [...system, ...acks, ...others, ...emitted]
      }
    },
    components: {
      messages,
      schemas: schemas.shared,
      tags: Object.fromEntries(areas.tags().map(tag => [tag.name, tag])),
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'Token of the server' } }
    }
  }
}

/** Packs come and go in any order; the document does not show it. */
function byType<S extends { readonly type: string }>(specs: readonly S[]): S[] {
  return [...specs].sort((a, b) => (a.type < b.type ? -1 : a.type > b.type ? 1 : 0))
}
