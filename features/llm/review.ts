/** What is written as the schema wants and still not as it can be meant. */
import { type ConfigRemark, reviewSent } from '../config/index.ts'
import { isHttpUrl, notAnAddress } from './addresses.ts'
import { nonBlank } from './env-table.ts'
import { fixedFields, type ModelRecord, type ProviderRecord } from './records.ts'

/** Remarks with paths below `providers`. */
export function reviewProviders(providers: Readonly<Record<string, ProviderRecord>>): ConfigRemark[] {
  return Object.entries(providers).flatMap(([id, record]) => [
    ...reviewName(id),
    ...reviewRecord(id, record),
    ...reviewAddress(id, record),
    ...reviewSent(id, record)
  ])
}

/** Remarks with paths below `models`. */
export function reviewModels(models: Readonly<Record<string, ModelRecord>>): ConfigRemark[] {
  return Object.entries(models).flatMap(([alias, record]) => [
    ...reviewName(alias),
    ...reviewRecord(alias, record),
    ...reviewAddress(alias, record),
    ...reviewSent(alias, record),
    ...reviewRecord(`${alias}.overrides`, record.overrides ?? {}),
    ...reviewSent(`${alias}.overrides`, record.overrides ?? {}),
    ...reviewOverrides(`${alias}.overrides`, record.overrides ?? {})
  ])
}

/** Routes name providers and models in their path, where no control character is let in and nothing is no name. */
function reviewName(name: string): ConfigRemark[] {
  if (name === '') return [{ path: name, message: 'a name must not be empty', refused: true }]
  return /\p{Cc}/u.test(name) ? [{ path: name, message: 'a name must not contain control characters', refused: true }] : []
}

/** The value may hold a credential: it is not repeated. */
function reviewAddress(path: string, { base_url }: { readonly base_url?: string | undefined }): ConfigRemark[] {
  const url = nonBlank(base_url)
  return url === undefined || isHttpUrl(url) ? [] : [{ path: `${path}.base_url`, message: notAnAddress, refused: true }]
}

function reviewOverrides(path: string, overrides: object): ConfigRemark[] {
  return fixedFields
    .filter(field => Object.hasOwn(overrides, field))
    .map(field => ({ path: `${path}.${field}`, message: 'an override cannot change this field', refused: true }))
}

function reviewRecord(path: string, { api_key, oauth, auth }: Pick<ProviderRecord, 'api_key' | 'oauth' | 'auth'>): ConfigRemark[] {
  if (auth === 'none' && (oauth || nonBlank(api_key) !== undefined)) {
    return [{ path: `${path}.auth`, message: 'auth = "none": the credential of this record is not used', refused: false }]
  }
  if (!oauth) return []
  const both = { path: `${path}.oauth`, message: 'api_key and oauth exclude each other; api_key is used', refused: true }
  const keyring = {
    path: `${path}.oauth.storage`,
    message: 'no keyring of the system is used: the tokens are kept in a file of the home directory that only its owner can read',
    refused: false
  }
  return [...(nonBlank(api_key) === undefined ? [] : [both]), ...(oauth.storage === 'keyring' ? [keyring] : [])]
}
