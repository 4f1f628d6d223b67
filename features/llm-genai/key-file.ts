/** A key file of the cloud: a service account, or a user that authorized a client. */
import { stat } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { FileUnusable, homeOfUser, readBounded } from '../../kernel/index.ts'
import { isLoopback, parseJson, recordOf } from '../llm/index.ts'
import { tokenUri } from './names.ts'

interface Common {
  readonly token_uri: string
  /** Project that the file names. */
  readonly project?: string
}

/** A program that signs for itself. */
export interface ServiceAccount extends Common {
  readonly type: 'service_account'
  readonly client_email: string
  /** PEM. */
  readonly private_key: string
  readonly private_key_id?: string
}

/** A person who let a client act for him. */
export interface AuthorizedUser extends Common {
  readonly type: 'authorized_user'
  readonly client_id: string
  readonly client_secret: string
  readonly refresh_token: string
  /** Project that pays for the user's requests. */
  readonly payer?: string
}

/** What a key file may hold. */
export type KeyFile = ServiceAccount | AuthorizedUser

/** A key file that cannot be used. The message says why, without a word of its content. */
export class KeyFileProblem extends Error {
  override readonly name = 'KeyFileProblem'
}

const LIMIT_BYTES = 64 * 1024

/** True when the value is the text of a key file instead of its path. */
const isText = (value: string): boolean => value.startsWith('{')

/** Changes whenever the file does; the text itself has no other state. Throws KeyFileProblem. */
export async function stampOf(value: string): Promise<string> {
  if (isText(value)) return ''
  const { mtimeMs, size, ino } = await guarded(() => stat(pathOf(value)))
  return `${mtimeMs} ${size} ${ino}`
}

/** Reads path or text. Throws KeyFileProblem. */
export async function readKeyFile(value: string): Promise<KeyFile> {
  return keyFileOf(isText(value) ? checkedSize(value) : String(await guarded(() => readBounded(pathOf(value), LIMIT_BYTES))))
}

function pathOf(value: string): string {
  const path = value.startsWith('~/') ? join(homeOfUser(), value.slice(2)) : value
  if (!isAbsolute(path) || path.includes('\0')) throw new KeyFileProblem('its key file is named by no absolute path')
  return path
}

function checkedSize(text: string): string {
  if (Buffer.byteLength(text) > LIMIT_BYTES) throw new KeyFileProblem(`its key file is larger than ${LIMIT_BYTES} bytes`)
  return text
}

async function guarded<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof FileUnusable) throw new KeyFileProblem(`its key file is ${error.message}`)
    const { code } = error as NodeJS.ErrnoException
    if (error instanceof KeyFileProblem || code === undefined) throw error
    throw new KeyFileProblem(`its key file cannot be read (${code})`)
  }
}

function keyFileOf(text: string): KeyFile {
  const value = parseJson(text)
  if (value === undefined) throw new KeyFileProblem('its key file is not JSON')
  const fields = recordOf(value)
  const optional = (name: string) => {
    const found = fields[name]
    return typeof found === 'string' && found.trim() !== '' ? found : undefined
  }
  const required = (name: string) => {
    const found = optional(name)
    if (found === undefined) throw new KeyFileProblem(`its key file has no ${name}`)
    return found
  }
  const token_uri = checkedUri(optional('token_uri') ?? tokenUri)
  const payer = optional('quota_project_id')
  const project = optional('project_id') ?? payer
  const common = { token_uri, ...(project && { project }) }
  switch (fields.type) {
    case 'service_account': {
      const private_key_id = optional('private_key_id')
      const own = { client_email: required('client_email'), private_key: required('private_key') }
      return { type: 'service_account', ...common, ...own, ...(private_key_id && { private_key_id }) }
    }
    case 'authorized_user': {
      const own = { client_id: required('client_id'), client_secret: required('client_secret'), refresh_token: required('refresh_token') }
      return { type: 'authorized_user', ...common, ...own, ...(payer && { payer }) }
    }
    default:
      throw new KeyFileProblem('its key file is of a type that is not known here (service_account and authorized_user are)')
  }
}

/** The key itself is never sent, but what proves it is: not in the clear, and to nobody through a user name in the address. */
function checkedUri(text: string): string {
  if (!URL.canParse(text)) throw new KeyFileProblem('the token_uri of its key file is not an address')
  const { protocol, username, password } = new URL(text)
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback(text))) {
    throw new KeyFileProblem('the token_uri of its key file is not https')
  }
  if (username !== '' || password !== '') throw new KeyFileProblem('the token_uri of its key file holds a user name')
  return text
}
