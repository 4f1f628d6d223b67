/** Asks the managed provider for a title. */
import { AppError, jsonOf } from '../../kernel/index.ts'
import { type HostIdentity, type LlmLogin, loginOf, OutboundRefused, readText, type Upstream } from '../llm/index.ts'
import { titleOf } from '../sessions/index.ts'
import { TitleUnavailable } from './contract.ts'

const answerBytes = 64 * 1024

export interface TitleService {
  readonly upstream: Pick<Upstream, 'post'>
  readonly logins: () => readonly LlmLogin[]
  readonly identity: HostIdentity
}

/** The provider as it is configured. */
export interface ManagedProvider {
  readonly id: string
  readonly base_url: string
}

const failed = (why: string, cause?: unknown) => new AppError(TitleUnavailable, { message: `no title can be generated: ${why}`, cause })

/** Throws TitleUnavailable for every failure, an aborted signal included. */
export async function askForTitle(service: TitleService, provider: ManagedProvider, chat: string, signal: AbortSignal): Promise<string> {
  const login = loginOf(service.logins(), provider.id)
  try {
    const token = await login?.accessToken(provider.id, { signal })
    if (!login || token === undefined) throw failed('the managed provider is not logged in')
    let answer = await ask(service, provider, chat, token, signal)
    if (answer.status === 401) {
      const renewed = await login.accessToken(provider.id, { signal, force: true, refused: token })
      if (renewed !== undefined) answer = await ask(service, provider, chat, renewed, signal)
    }
    if (answer.status < 200 || answer.status > 299) throw failed(`the managed provider answered HTTP ${answer.status}`)
    const title = titleIn(answer.text)
    if (title === '') throw failed('the managed provider answered without a title')
    return title
  } catch (error) {
    if (AppError.is(error)) throw error
    if (error instanceof OutboundRefused) throw failed(error.message, error)
    throw failed(signal.aborted ? 'the managed provider did not answer in time' : 'the managed provider could not be asked', error)
  }
}

async function ask(
  { upstream, identity }: TitleService,
  { base_url }: ManagedProvider,
  chat_content: string,
  token: string,
  signal: AbortSignal
): Promise<{ readonly status: number; readonly text: string }> {
  const headers = { accept: 'application/json', ...(await identity.headers()), authorization: `Bearer ${token}` }
  const { status, body } = await upstream.post(
    { base_url, headers: {} },
    '/tools',
    { method: 'chat_title', params: { chat_content } },
    headers,
    signal
  )
  const end = () => void body.destroy()
  signal.addEventListener('abort', end, { once: true })
  try {
    return { status, text: await readText(body, answerBytes) }
  } finally {
    signal.removeEventListener('abort', end)
  }
}

function titleIn(text: string): string {
  const { title } = (jsonOf(text) ?? {}) as { title?: unknown }
  return typeof title === 'string' ? titleOf(title) : ''
}
