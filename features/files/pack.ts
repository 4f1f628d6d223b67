/** Wires uploads: receive, hand out, delete, sweep. */
import { AppError, BlobTooLarge, binary, definePack, invalid, tailOf } from '../../kernel/index.ts'
import {
  bytesDir,
  bytesStore,
  deleteFile,
  downloadFile,
  factsDir,
  factsStore,
  Options,
  UploadMissing,
  type UploadObject,
  uploadFile
} from './contract.ts'
import { readForm } from './form.ts'
import { passive, Uploads } from './service.ts'
import { UploadTable } from './uploads.ts'

/** Latest instant whose date has a year of four digits, as times on the wire have. */
const lastInstant = Date.UTC(10_000, 0) - 1
/** What a form may hold beside its file. */
const formBytes = 1024 * 1024
const nameChars = 255

export default definePack({
  name: 'files',
  description: 'Uploads: receive, hand out, delete, expire',
  area: 'Files',
  provides: [Uploads],
  config: Options,
  setup(ctx) {
    const facts = ctx.store(factsStore, { dir: factsDir })
    const bytes = ctx.store(bytesStore, { dir: bytesDir })
    const uploads = new UploadTable({ home: ctx.home, facts, bytes, now: ctx.now })
    const max_bytes = ctx.config.max_bytes === 0 ? Number.POSITIVE_INFINITY : ctx.config.max_bytes

    ctx.route(uploadFile, async ({ request }) => {
      if (Number(request.headers['content-length'] ?? 0) > max_bytes + formBytes) throw tooLarge(max_bytes)
      const id = `f_${ctx.newId()}`
      try {
        const form = await readForm(request, ['name', 'expires_in_sec'], file => uploads.receive(id, file, max_bytes))
        const created = ctx.now()
        const expires_at = expiryOf(form.fields.get('expires_in_sec'), created)
        const upload: UploadObject = {
          id,
          name: nameOf(form.fields.get('name'), form.filename),
          media_type: form.media_type,
          size: form.stored.size,
          created_at: created.toISOString(),
          ...(expires_at === undefined ? {} : { expires_at })
        }
        await uploads.announce(upload)
        return upload
      } catch (error) {
        await uploads
          .remove(id)
          .catch((err: unknown) => ctx.log.warn({ err, file_id: id }, 'what came of an upload that failed stays until a sweep'))
        throw error instanceof BlobTooLarge ? tooLarge(max_bytes) : error
      }
    })

    ctx.route(downloadFile, async ({ params }) => {
      const upload = await uploads.find(params.file_id)
      if (!upload) throw new AppError(UploadMissing)
      const { id, file, size, name, media_type } = upload
      const shown = /^(?:image|video|audio)\//.test(media_type)
      return binary({
        file,
        type: media_type,
        filename: name,
        disposition: shown ? 'inline' : 'attachment',
        etag: `"${id}-${size}"`,
        conditional: false,
        headers: passive
      })
    })

    ctx.route(deleteFile, async ({ params }) => {
      if (!(await uploads.discard(params.file_id))) throw new AppError(UploadMissing)
      return { deleted: true as const }
    })

    const { signal, log } = ctx
    const swept = (err: unknown) => void (signal.aborted || log.warn({ err }, 'expired uploads could not be removed'))
    ctx.timer(ctx.config.sweep_ms, () => uploads.sweep(signal).catch(swept))
    ctx.provide(Uploads, { find: id => uploads.find(id) })
  }
})

const tooLarge = (max_bytes: number) => invalid([{ path: 'body.file', message: `is larger than ${max_bytes} bytes` }])

/** Whole seconds from now: a fraction is left out. Throws 40001 for what is no such number. */
function expiryOf(text: string | undefined, now: Date): string | undefined {
  if (text === undefined || text.trim() === '') return undefined
  const at = now.getTime() + Math.floor(Number(text)) * 1000
  if (/^\s*\+?(?:\d+(?:\.\d+)?|\.\d+)(?:e\d+)?\s*$/i.test(text) && at <= lastInstant) return new Date(at).toISOString()
  throw invalid([{ path: 'body.expires_in_sec', message: 'must be a number of seconds, not negative, that ends before the year 10000' }])
}

/** The given name, else the one of the file; without control characters. */
function nameOf(given: string | undefined, filename: string | undefined): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  const clean = (text: string | undefined) => (text ?? '').replace(/[\u0000-\u001f\u007f]/g, ' ').trim()
  const name = clean(given)
  if (name.length > nameChars) throw invalid([{ path: 'body.name', message: `is longer than ${nameChars} characters` }])
  return name || tailOf(clean(written(filename)), nameChars) || 'file'
}

/** Browsers write these three so, and nothing else, into the head of a part (HTML: multipart/form-data encoding). */
const written = (filename: string | undefined) => filename?.replace(/%22/g, '"').replace(/%0D|%0A/gi, ' ')
