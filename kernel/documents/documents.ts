/** The two API documents of exactly what is mounted, built at the first request after a change. */

import type { Registry } from '../lifecycle/registry.ts'
import { asyncapiDocument } from './asyncapi.ts'
import { openapiDocument } from './openapi.ts'

export function createDocuments(registry: Registry, version: string) {
  let openapi: object | undefined
  let asyncapi: object | undefined
  const info = { title: 'svc-code', version }
  return {
    openapi(): object {
      openapi ??= openapiDocument(
        registry.routes().map(route => route.spec),
        info
      )
      return openapi
    },
    asyncapi(): object {
      asyncapi ??= asyncapiDocument(
        registry.events(),
        registry.frames().map(frame => frame.spec),
        registry.outFrames(),
        info
      )
      return asyncapi
    },
    /** What is mounted has changed. */
    changed(): void {
      openapi = undefined
      asyncapi = undefined
    }
  }
}
