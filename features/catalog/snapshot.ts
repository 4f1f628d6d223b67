/**
 * Built-in directory, used when no directory URL is set or it cannot be reached. Written by hand on 2026-11-20, not taken from a
 * service: it lists no public provider, only how to reach a model server on this machine. Ports and sizes are common defaults of such
 * servers, so check them: most serve one model under any name.
 */
const models = (context: number) => ({
  default: { id: 'default', name: 'The model that the server has loaded', limit: { context }, tool_call: true }
})

export const snapshot = {
  'local-chat': {
    id: 'local-chat',
    name: 'Model server on this machine',
    type: 'compat_chat',
    api: 'http://127.0.0.1:8080/v1',
    models: models(8_192)
  },
  'local-responses': {
    id: 'local-responses',
    name: 'Model server on this machine (responses)',
    type: 'compat_responses',
    api: 'http://127.0.0.1:8080/v1',
    models: models(8_192)
  },
  'local-messages': {
    id: 'local-messages',
    name: 'Model server on this machine (messages)',
    type: 'compat_messages',
    api: 'http://127.0.0.1:8080',
    models: models(8_192)
  }
}
