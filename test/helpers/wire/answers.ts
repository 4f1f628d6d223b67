/** Answers against the OpenAPI operation of their route: status, media type, envelope, code, data and details. */
import { openapiDocument } from '../../../features/api-docs/openapi.ts'
import { type AnyRoute, defineRoute, Type } from '../../../kernel/index.ts'
import type { SeenAnswer } from '../../../kernel/testing.ts'
import { noteAnswer } from './coverage.ts'
import { follow, misfit, type Node } from './shapes.ts'

const info = { title: 'svc-code', version: '1' }
const json = 'application/json'

/** What is answered where nothing is mounted: failures that every operation may answer. */
const nowhere = defineRoute({ method: 'GET', path: '/api/v1/nowhere', summary: 'Nowhere', data: Type.Never() })

/** The document of one route says of it what that of the whole server does (`contract/spec-and-wire.test.ts`), and is made once per process. */
const documents = new WeakMap<AnyRoute, Documented>()

interface Documented {
  readonly document: Node
  readonly operation: Node
  /** A route whose data is another now (configuration) is documented anew. */
  readonly data: object
}

export function documented(route: AnyRoute): Documented {
  const known = documents.get(route)
  const { data } = route
  if (known?.data === data) return known
  const document: Node = openapiDocument([route], info)
  const [item] = Object.values<Node>(document.paths)
  const made = { document, operation: item[route.method.toLowerCase()], data }
  documents.set(route, made)
  return made
}

/** What the document has against an answer; undefined when nothing. */
export function answerProblem({ method, route, answer }: SeenAnswer): string | undefined {
  if (method === 'OPTIONS' || route?.fallback) return undefined // in no document
  const { document, operation } = documented(route ?? nowhere)
  const { status, headers, body } = answer
  const response = follow(document, operation.responses[status])
  if (!response) return `status ${status} is not documented, ${Object.keys(operation.responses)} are: ${body.toString('utf8', 0, 300)}`
  const type = String(headers['content-type'] ?? '').split(';', 1)[0]!
  if (response.content === undefined) {
    if (body.length > 0) return `status ${status} comes with ${body.length} bytes, and is documented without any`
    if (route) noteAnswer(route, undefined)
    return undefined
  }
  const envelope = type === json ? response.content[json]?.schema : undefined
  if (!envelope) {
    const wanted = Object.keys(response.content)
    if (!wanted.some(each => fits(type, each))) return `status ${status} comes as '${type}', documented are ${wanted}`
    if (route) noteAnswer(route, undefined)
    return undefined
  }
  if (method === 'HEAD') return body.length > 0 ? 'an answer to HEAD has a body' : undefined
  return envelopeProblem(document, route, envelope, response, body)
}

function envelopeProblem(document: Node, route: AnyRoute | undefined, schema: Node, response: Node, body: Buffer): string | undefined {
  let value: Node
  try {
    value = JSON.parse(body.toString())
  } catch {
    return 'the body is not JSON'
  }
  const branches: Node[] = schema.anyOf ?? [schema]
  const codeOf = (branch: Node) => follow(document, branch).properties?.code?.const
  const branch = branches.find(each => codeOf(each) !== undefined && codeOf(each) === value?.code)
  if (branch) {
    const problem = misfit(document, branch, value)
    if (problem !== '') return `code ${value.code}: ${problem}; the answer is ${JSON.stringify(value).slice(0, 400)}`
    if (route) noteAnswer(route, value.code)
    return undefined
  }
  // Plain JSON: a document, or a file that happens to be JSON.
  const bare = branches.find(each => codeOf(each) === undefined)
  if (bare) {
    const problem = misfit(document, bare, value)
    if (problem !== '') return problem
  } else if (response.content['*/*'] === undefined) return `code ${value?.code} (${value?.msg}) is not documented for its status`
  if (route) noteAnswer(route, undefined)
  return undefined
}

/** `image/png` is what a wildcard of its kind, or of all, documents. */
function fits(type: string, wanted: string): boolean {
  return wanted === '*/*' || wanted === type || (wanted.endsWith('/*') && type.startsWith(wanted.slice(0, -1)))
}
