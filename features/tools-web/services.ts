/** The search and fetch services of the user's configuration: one POST each, with the credential that their record has. */
import type { Static } from '../../kernel/index.ts'
import type { servicesSection } from '../config/index.ts'
import { isHttpUrl, isTransportError, type LlmLogin, loginOf, nonBlank, OutboundRefused, readText, type Upstream } from '../llm/index.ts'

export type ServiceRecord = NonNullable<Static<typeof servicesSection.schema>['svc_search']>

const answerBytes = 10 * 1024 * 1024

export interface ServicePorts {
  readonly upstream: Pick<Upstream, 'post'>
  readonly logins: () => readonly LlmLogin[]
  /** Who asks: headers. */
  readonly introduction: () => Promise<Readonly<Record<string, string>>>
  readonly timeoutMs: number
}

/** The service did not answer as hoped; its message may be shown. */
export class ServiceProblem extends Error {}

/** The address of a service that can be asked. */
export const serviceUrl = (record: ServiceRecord | undefined): string | undefined => {
  const url = nonBlank(record?.base_url)
  return isHttpUrl(url) ? url : undefined
}

/** The text of a 2xx answer. Throws ServiceProblem; rejects with the signal's reason after an abort. `name`: of the record, in texts. */
export async function askService(
  name: string,
  record: ServiceRecord,
  body: unknown,
  accept: string,
  ports: ServicePorts,
  signal: AbortSignal
): Promise<string> {
  const base_url = serviceUrl(record) ?? ''
  const headers = { accept, ...(await ports.introduction()), ...(await credential(name, record, ports, signal)) }
  try {
    const custom = Object.fromEntries(Object.entries(record.custom_headers ?? {}).map(([key, value]) => [key.toLowerCase(), value]))
    const reply = await ports.upstream.post({ base_url, headers: custom }, '', body, headers, signal)
    const good = reply.status >= 200 && reply.status <= 299
    const text = await readText(reply.body, good ? answerBytes : 1, ports.timeoutMs)
    signal.throwIfAborted()
    if (!good) throw new ServiceProblem(`${name} answered HTTP ${reply.status}`)
    return text
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof OutboundRefused) throw new ServiceProblem(error.message, { cause: error })
    if (!isTransportError(error)) throw error
    throw new ServiceProblem(`${name} could not be reached`, { cause: error })
  }
}

async function credential(
  name: string,
  record: ServiceRecord,
  { logins }: ServicePorts,
  signal: AbortSignal
): Promise<Record<string, string>> {
  const { oauth } = record
  const key = nonBlank(record.api_key) ?? (oauth && (await loginOf(logins(), name, oauth)?.accessToken(name, { oauth, signal })))
  if (key === undefined && oauth) throw new ServiceProblem(`${name} is not logged in; log in again`)
  return key === undefined ? {} : { authorization: `Bearer ${key}` }
}
