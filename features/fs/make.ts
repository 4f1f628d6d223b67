/** fs:mkdir: directories are made in a directory that is held open, so that no link can lead the new one elsewhere. */
import { mkdir } from 'node:fs/promises'
import { posix } from 'node:path'
import { AppError } from '../../kernel/index.ts'
import type { Root } from '../file-search/index.ts'
import { PathMissing } from '../workspaces/index.ts'
import { pin, translated, withParent, withPin } from './boundary.ts'
import type { Entry } from './contract.ts'
import { entryAt } from './entry.ts'
import { PathExists } from './errors.ts'

/** Throws PathMissing (40409) without a parent directory, PathExists (40919); with `recursive` makes parents, and takes a directory that is there. */
export async function makeIn(root: Root, path: string, recursive: boolean): Promise<Entry> {
  if (!recursive) await makeOne(root, path)
  else {
    let at = ''
    for (const part of path === '.' ? [] : path.split('/')) {
      at = at === '' ? part : `${at}/${part}`
      await makeOne(root, at).catch(async (error: unknown) => {
        if (!AppError.is(error) || error.code !== PathExists.code) throw error
        await assertDirectory(root, at, error)
      })
    }
  }
  return await entryAt(root, path)
}

async function makeOne(root: Root, path: string): Promise<void> {
  // What leads out says so, also when it is there.
  await pin(root, path)
    .then(held => held.close())
    .catch((error: unknown) => {
      if (!AppError.is(error) || error.code !== PathMissing.code) throw error
    })
  await withParent(root, path, async (parent, name) => {
    if (!parent.stats.isDirectory()) throw new AppError(PathMissing, { message: `path ${posix.dirname(path)} is not a directory` })
    await mkdir(`${parent.at}/${name}`).catch((error: unknown) => {
      const exists = (error as NodeJS.ErrnoException).code === 'EEXIST'
      throw exists ? new AppError(PathExists, { message: `path ${path} exists already`, cause: error }) : translated(error, path)
    })
  })
}

async function assertDirectory(root: Root, path: string, otherwise: AppError): Promise<void> {
  await withPin(root, path, async ({ stats }) => {
    if (!stats.isDirectory()) throw otherwise
  })
}
