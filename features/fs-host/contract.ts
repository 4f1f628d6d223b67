/** Wire shapes and routes of the server's machine (contract 3, File system without a session). */
import { defineRoute, nullable, Type } from '../../kernel/index.ts'
import { PathExists, PathIsDirectory } from '../fs/index.ts'
import { PathDenied, PathMissing } from '../workspaces/index.ts'

const absolute = Type.String({ minLength: 1, description: 'absolute' })

export const browseDirectories = defineRoute({
  method: 'GET',
  path: '/api/v1/fs:browse',
  operationId: 'browseDirectories',
  summary: 'Directories below a directory of the machine',
  query: Type.Object({ path: Type.Optional(Type.String({ minLength: 1, description: "absolute; default: the user's home" })) }),
  data: Type.Object({
    path: Type.String({ description: 'links resolved' }),
    parent: nullable(Type.String({ description: 'null: it is the root' })),
    entries: Type.Array(Type.Object({ name: Type.String(), path: Type.String(), is_dir: Type.Literal(true) }), {
      description: 'by name, hidden ones last; links are left out'
    })
  }),
  errors: [PathMissing, PathDenied]
})

export const readHome = defineRoute({
  method: 'GET',
  path: '/api/v1/fs:home',
  operationId: 'readHome',
  summary: "The user's home, and roots of workspaces",
  data: Type.Object({
    home: Type.String(),
    recent_roots: Type.Array(Type.String(), {
      description: 'of the registered workspaces, the eight that were opened last, the latest first'
    })
  })
})

export const readHostFile = defineRoute({
  method: 'GET',
  path: '/api/v1/fs:content',
  operationId: 'readHostFile',
  summary: 'Bytes of any file of the machine; single ranges, ETag',
  query: Type.Object({ path: absolute }),
  data: Type.Unknown(),
  binary: { types: ['*/*'], statuses: [200, 206, 304] },
  errors: [PathMissing, PathDenied, PathIsDirectory]
})

export const makeHostDirectory = defineRoute({
  method: 'POST',
  path: '/api/v1/fs:mkdir',
  operationId: 'makeHostDirectory',
  summary: 'Make a directory on the machine; its parent must exist',
  body: Type.Object({ path: absolute }),
  data: Type.Object({ path: Type.String() }),
  errors: [PathMissing, PathDenied, PathExists]
})
