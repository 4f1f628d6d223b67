/** Renewed logins that the disk refuses. */
import assert from 'node:assert/strict'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Credential } from '../../../features/oauth/contract.ts'
import { TokenStore, type TokenStoreParts } from '../../../features/oauth/token-store.ts'
import { AppError, PersistenceFailed } from '../../../kernel/index.ts'
import { latch } from '../../helpers/latch.ts'
import { freshDir } from '../../helpers/temp.ts'

const slot = 'svc-code'
const account = { slot, oauth_host: 'https://login.example' }
const credential = (name: string, expires_in: number): Credential => ({
  access_token: `access ${name}`,
  refresh_token: `refresh ${name}`,
  expires_at: Math.floor(Date.now() / 1000) + expires_in,
  scope: '',
  token_type: 'Bearer',
  expires_in: 3600
})

/** A login that is renewed at its first use, and a disk that takes nothing. `asked`: refresh tokens that were used. */
async function renewed() {
  const home = await freshDir()
  const file = join(home, 'credentials', `${slot}.json`)
  let stored: Credential | undefined = credential('old', 10)
  await mkdir(join(home, 'credentials'))
  await writeFile(file, '{}')
  const full = () => Promise.reject(new AppError(PersistenceFailed))
  const store = {
    get: async () => stored,
    put: full,
    update: full as () => Promise<Credential | undefined>,
    async delete() {
      stored = undefined
      await rm(file)
    }
  }
  const asked: string[] = []
  const service = {
    async refresh(_host: string, _client: string, token: string) {
      asked.push(token)
      return credential('new', 3600)
    }
  }
  const log = { info() {}, warn() {} } as unknown as TokenStoreParts['log']
  const parts = { home, service, client_id: () => 'client', now: () => new Date(), log, unit_ms: 1 }
  const tokens = new TokenStore({ ...parts, store: store as unknown as TokenStoreParts['store'] })
  assert.equal(await tokens.token(account), 'access new')
  return { tokens, store, asked }
}

test('a renewal that could not be written outlives a new login that cannot be written either', async () => {
  const { tokens, asked } = await renewed()
  await assert.rejects(tokens.put(slot, credential('other', 3600)))
  assert.equal(await tokens.token(account), 'access new')
  assert.deepEqual(asked, ['refresh old'])
})

test('a renewal whose write fails while its login is discarded is gone with it', async () => {
  const { tokens, store } = await renewed()
  const [writing, refused] = [latch(), latch()]
  store.update = async () => {
    writing.open()
    await refused.opened
    throw new AppError(PersistenceFailed)
  }
  const discard = store.delete
  store.delete = async () => {
    refused.open() // writes of a file wait for each other
    await used
    await discard()
  }
  const used = tokens.token(account)
  await writing.opened
  await tokens.discard(slot)
  store.update = async () => {
    throw new AppError(PersistenceFailed)
  }
  assert.equal(await tokens.token(account), undefined)
})

test('a renewal that could not be written outlives a logout that the disk refuses: the login is still there', async () => {
  const { tokens, store, asked } = await renewed()
  store.delete = () => Promise.reject(new AppError(PersistenceFailed))
  await assert.rejects(tokens.discard(slot))
  assert.equal(await tokens.token(account), 'access new')
  assert.deepEqual(asked, ['refresh old'])
})
