/** The API documents of exactly what is mounted, as plain JSON without an envelope. */
import { definePack, KernelInfo } from '../../kernel/index.ts'
import { asyncapi, openapi } from './contract.ts'
import { documentReply } from './document-reply.ts'

export default definePack({
  name: 'api-docs',
  description: 'API documents: OpenAPI and AsyncAPI',
  area: 'Server',
  needs: { kernel: KernelInfo },
  setup(ctx, { kernel }) {
    ctx.route(
      openapi,
      documentReply(kernel, async ({ routes }, info) => (await import('./openapi.ts')).openapiDocument(routes, info))
    )
    ctx.route(
      asyncapi,
      documentReply(kernel, async (declared, info) => (await import('./asyncapi.ts')).asyncapiDocument(declared, info))
    )
  }
})
